#include <plugrad/ops/nonzero.hpp>

#include <core/ops/argument.hpp>
#include <core/ops/positions.hpp>
#include <core/ops/run.hpp>
#include <plugrad/ops/advanced_indexing.hpp>
#include <plugrad/ops/arrangement.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/indexing.hpp>
#include <plugrad/ops/logic.hpp>
#include <plugrad/ops/scans.hpp>
#include <plugrad/ops/views.hpp>

#include <algorithm>

namespace plugrad {
namespace {
Tensor truth_of(const Tensor& x) { return cast(x.detach(), DType::boolean); }

struct Broadcast {
  Tensor x, mask;
};

Broadcast broadcast(const char* name, const Tensor& x, const Tensor& mask) {
  require_defined(x, name);
  require_dtype(name, mask, DType::boolean, "mask");
  if (x.device() != mask.device()) throw_not_together(name, x, mask);
  const Shape shape = broadcast_shapes(x.shape(), mask.shape());
  return {expand(x, shape), expand(mask, shape)};
}
}  // namespace

Tensor nonzero(const Tensor& x) {
  require_defined(x, "nonzero");
  const Tensor truth = truth_of(x);
  if (!x.rank()) return zeros({true_positions(reshape(truth, {1})).count(), 0}, DType::i64, x.device());
  return stack(true_coordinates(truth), 1);
}
Tensor nonzero_static(const Tensor& x, int64_t size, int64_t fill_value) {
  if (size < 0) refuse("nonzero_static", "size is " + std::to_string(size) + ": give 0 or more");
  require_defined(x, "nonzero_static");
  if (!x.rank()) return zeros({size, 0}, DType::i64, x.device());
  if (!x.count() || !size) return full({size, x.rank()}, fill_value, DType::i64, x.device());
  // The n-th true element goes to place n, and all others to a place behind the last.
  const DType dtype = position_dtype(x, std::max(x.count(), size) + 1);
  const Tensor flat = reshape(truth_of(x), {x.count()}), count = cumsum(cast(flat, dtype), 0);
  const Tensor place = cast(where(logical_and(flat, le(count, size)), sub(count, 1), size), DType::i64);
  const Tensor none = zeros({size + 1}, dtype, x.device());
  const Tensor is_found = lt(arange(0, size, 1, dtype, x.device()), select(count, 0, -1));
  std::vector<Tensor> axes;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const Tensor numbers = reshape(coordinates_along(x, axis, dtype), {x.count()});
    const Tensor found = slice(scatter_add(none, 0, place, numbers), 0, 0, size);
    axes.push_back(where(is_found, cast(found, DType::i64), fill_value));
  }
  return stack(axes, 1);
}
Tensor argwhere(const Tensor& x) { return nonzero(x); }

std::vector<Tensor> where(const Tensor& condition) {
  require_defined(condition, "where");
  return true_coordinates(condition.rank() ? truth_of(condition) : reshape(truth_of(condition), {1}));
}

Tensor masked_select(const Tensor& x, const Tensor& mask) {
  const Broadcast both = broadcast("masked_select", x, mask);
  return index(both.x, {both.mask});
}

Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& source) {
  const Broadcast both = broadcast("masked_scatter", x, mask);
  require_defined(source, "masked_scatter");
  require_together("masked_scatter", x, source);
  if (!both.x.count()) return clone(both.x);
  const Tensor flat = reshape(both.mask, {both.mask.count()});
  const Tensor counts = cumsum(cast(flat, position_dtype(x, both.mask.count())), 0);
  // A source without elements gets an element 0. A true element of the mask reads beyond it: an index out of range.
  const int64_t missing = source.count() ? 0 : 1;
  const Tensor position = where(flat, add(sub(counts, 1), missing), 0);
  const Tensor elements = missing ? zeros({1}, source.dtype(), source.device()) : reshape(source, {source.count()});
  return where(both.mask, reshape(gather(elements, 0, cast(position, DType::i64)), both.x.shape()), both.x);
}

}  // namespace plugrad
