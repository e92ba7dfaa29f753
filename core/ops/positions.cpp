#include <core/ops/positions.hpp>

#include <core/ops/run.hpp>
#include <core/runtime/local.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/advanced_indexing.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/indexing.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/scans.hpp>
#include <plugrad/ops/views.hpp>

#include <algorithm>
#include <bit>

namespace plugrad {
namespace {
constexpr int64_t kExactInF32 = int64_t{1} << 24;

bool adds_integers(DeviceState& device) {
  plugrad_view v{};
  v.dtype = PLUGRAD_I64;
  const plugrad_view* views[] = {&v, &v, &v};
  const OpCall call{PLUGRAD_OP_ADD, 1, 2, views, nullptr, nullptr};
  return device.kernel(call.op(), v.dtype, 0);
}
}  // namespace

DType position_dtype(const Tensor& on, int64_t end) {
  return end > kExactInF32 || adds_integers(device_of(on)) ? DType::i64 : DType::f32;
}

namespace {
// To look whether an index is negative costs less than to wrap all of them, unless the host would wait for the answer. A
// compiled step must do the same for all indices.
bool may_look(const Tensor& index) {
  const DeviceState& device = device_of(index);
  return !observe::hides_elements() && device.host_memory() && !device.compute && index.dtype() == DType::i64 &&
         index.count();
}
bool none_is_negative(const Tensor& index) { return may_look(index) && min(index).item<int64_t>() >= 0; }
}  // namespace

Tensor indices_from_start(const char* name, const Tensor& index, int64_t extent) {
  const NoGrad unrecorded;
  const Tensor whole = cast(index, DType::i64);
  if (!whole.count()) return whole;
  if (!may_look(whole)) {
    const Tensor given = cast(whole, position_dtype(whole, extent));
    return cast(where(lt(given, 0), extent, given), DType::i64);
  }
  if (const int64_t least = min(whole).item<int64_t>(); least < 0)
    throw Error(Code::index_error, std::string("[") + name + "] index " + std::to_string(least) +
                                       " is out of range for an axis of extent " + std::to_string(extent) +
                                       ": indices of this function count from the start");
  return whole;
}

Tensor wrap_indices(const Tensor& index, int64_t extent) {
  if (none_is_negative(index)) return index;
  const Tensor given = cast(index, position_dtype(index, extent)), shifted = add(given, extent);
  return cast(where(lt(given, 0), where(lt(shifted, 0), given, shifted), given), DType::i64);
}

// --- Masks.

namespace {
// The places of true elements among each other.
struct Places {
  Tensor truth;  // 1 or 0
  Tensor place;  // i64: of the last true element up to here
  int64_t count = 0;
};

Places places_of(const Tensor& mask) {
  if (!mask.count()) return {};
  const Tensor truth = cast(mask, position_dtype(mask, mask.count())), sums = cumsum(truth, 0);
  return {truth, cast(maximum(sub(sums, 1), 0), DType::i64), static_cast<int64_t>(select(sums, 0, -1).item<double>())};
}

// The values (in truth's dtype) of the true elements, as i64.
Tensor compressed(const Places& places, const Tensor& values) {
  const Tensor none = zeros({places.count}, values.dtype(), values.device());
  return cast(scatter_add(none, 0, places.place, mul(values, places.truth)), DType::i64);
}
}  // namespace

Tensor true_positions(const Tensor& mask) {
  const Places places = places_of(mask);
  if (!places.count) return zeros({0}, DType::i64, mask.device());
  return compressed(places, arange(0, mask.count(), 1, places.truth.dtype(), mask.device()));
}

Tensor coordinates_along(const Tensor& x, int axis, DType dtype) {
  Shape along(std::vector<int64_t>(static_cast<size_t>(x.rank()), 1));
  along[static_cast<size_t>(axis)] = x.size(axis);
  return expand(reshape(arange(0, x.size(axis), 1, dtype, x.device()), along), x.shape());
}

std::vector<Tensor> true_coordinates(const Tensor& mask) {
  const Places places = places_of(reshape(mask, {mask.count()}));
  std::vector<Tensor> all;
  for (int axis = 0; axis < mask.rank(); ++axis) {
    all.push_back(zeros({0}, DType::i64, mask.device()));
    if (!places.count) continue;
    all.back() = compressed(places, reshape(coordinates_along(mask, axis, places.truth.dtype()), {mask.count()}));
  }
  return all;
}

// --- Writers.

namespace {
// 1 where a position along the axis is the last position that names its element, else 0. Decides bit by bit, from the
// highest: a position without the bit drops out if a remaining position for the same element has the bit. number: the
// positions along the axis. none: a 0 for each element.
Tensor last_of_each(const Tensor& index, int axis, const Tensor& number, const Tensor& none) {
  Tensor in = ones(index.shape(), number.dtype(), number.device()), rest = number;
  for (uint64_t bit = std::bit_floor(static_cast<uint64_t>(index.size(axis) - 1)); bit; bit /= 2) {
    const int64_t value = static_cast<int64_t>(bit);
    const Tensor has = cast(ge(rest, value), number.dtype()), leading = mul(in, has);
    rest = sub(rest, mul(has, value));
    in = where(gt(gather(scatter_add(none, axis, index, leading), axis, index), 0), leading, in);
  }
  return in;
}
}  // namespace

Writers last_writers(const Tensor& index, int axis, int64_t extent) {
  const int64_t length = index.size(axis);
  Shape shape = index.shape(), along(std::vector<int64_t>(static_cast<size_t>(index.rank()), 1));
  shape[static_cast<size_t>(axis)] = extent;
  along[static_cast<size_t>(axis)] = length;
  const DType dtype = position_dtype(index, std::max(length, extent) + 1);
  const Tensor none = zeros(shape, dtype, index.device());
  if (!index.count()) return {cast(none, DType::boolean), cast(none, DType::i64)};
  const Tensor number = reshape(arange(0, length, 1, dtype, index.device()), along);
  Tensor in = ones(index.shape(), dtype, index.device());
  const Tensor times = scatter_add(none, axis, index, in);
  // A look is cheaper than the last of each, but a compiled step must do the same for all indices.
  const bool is_shared = length > 1 && (observe::hides_elements() || max(times).item<double>() > 1);
  if (is_shared) in = last_of_each(index, axis, number, none);
  return {gt(times, 0), cast(scatter_add(none, axis, index, mul(in, number)), DType::i64)};
}

}  // namespace plugrad
