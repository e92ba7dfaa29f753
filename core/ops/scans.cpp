#include <plugrad/ops/scans.hpp>

#include <core/ops/argument.hpp>
#include <core/ops/autocast_rules.hpp>
#include <core/ops/run.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/arithmetic.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/indexing.hpp>
#include <plugrad/ops/logic.hpp>
#include <plugrad/ops/views.hpp>

#include <algorithm>

namespace plugrad {
namespace {
// Joins each element with the element `step` before it, for step = 1, 2, 4, ... (Hillis and Steele, "Data parallel
// algorithms", 1986).
Tensor scan(const Tensor& x, int axis, Tensor (*join)(const Tensor&, const Tensor&)) {
  Tensor y = x;
  const int64_t n = x.size(axis);
  for (int64_t step = 1; step < n; step *= 2)
    y = cat({slice(y, axis, 0, step), join(slice(y, axis, step, n), slice(y, axis, 0, n - step))}, axis);
  return y;
}

// A tensor of rank 0 is its own sum and product along axis 0 or -1.
int scanned_axis(const char* name, const Tensor& x, int axis) {
  require_defined(x, name);
  return normal_axis(axis, std::max(1, x.rank()), name);
}
DType summed_dtype(const Tensor& x) { return is_inexact(x.dtype()) ? x.dtype() : DType::i64; }

Tensor reversed(const Tensor& x, int axis) { return slice(x, axis, -1, -x.size(axis) - 1, -1); }

// The sums of the elements up to each element, or from each element on.
struct Sums {
  int axis;
  bool reverse;
};

Tensor computed_sums(const Tensor& x, const Sums& how) {
  const NoGrad unrecorded;
  const DType dtype = summed_dtype(x);
  const Tensor out = empty_like(Op::CUMSUM, device_of(x), view_of(x), static_cast<uint8_t>(dtype));
  const plugrad_scan attributes{sizeof attributes, how.axis, how.reverse};
  if (!x.count() || try_run(Op::CUMSUM, {out}, {x}, attributes)) return out;
  count_decomposition(x);
  const Tensor wide = cast(x, accumulator_of(dtype));
  const Tensor sums =
      how.reverse ? reversed(scan(reversed(wide, how.axis), how.axis, add), how.axis) : scan(wide, how.axis, add);
  const Tensor rounded = cast(sums, dtype);
  return rounded.is_same(x) ? clone(x) : rounded;
}

Tensor sums_along(const Tensor& x, const Sums& how) {
  static constexpr auto kRule = rule("cumsum", gradient<kPayload>([](const Tensor& grad, const Sums& how) {
                                       return sums_along(grad, {how.axis, !how.reverse});
                                     }));
  return differentiable(kRule, how, computed_sums(x, how), x);
}
}  // namespace

Tensor cumsum(const Tensor& x, int axis) {
  if (autocasting()) [[unlikely]]
    return in_f32(cumsum, x, axis);
  const int along = scanned_axis("cumsum", x, axis);
  if (!x.rank()) return cast(clone(x), summed_dtype(x));
  return sums_along(x, {along, false});
}

Tensor cumprod(const Tensor& x, int axis) {
  if (autocasting()) [[unlikely]]
    return in_f32(cumprod, x, axis);
  const int along = scanned_axis("cumprod", x, axis);
  if (!x.rank()) return cast(clone(x), summed_dtype(x));
  // A product of halves may fit a half although a part of it is infinite.
  const DType dtype = summed_dtype(x);
  const Tensor products = cast(scan(cast(x, accumulator_of(dtype)), along, mul), dtype);
  return products.is_same(x) ? clone(x) : products;
}

Tensor logcumsumexp(const Tensor& x, int axis) {
  if (autocasting()) [[unlikely]]
    return in_f32(logcumsumexp, x, axis);
  require_floating("logcumsumexp", x);
  const int along = scanned_axis("logcumsumexp", x, axis);
  if (!x.rank()) return clone(x);
  const Tensor sums = cast(scan(cast(x, accumulator_of(x.dtype())), along, logaddexp), x.dtype());
  return sums.is_same(x) ? clone(x) : sums;
}

namespace {
// Shape (.., n, ..) with 0, 1, .. along the axis and extents of 1 elsewhere.
Tensor places_along(const Tensor& x, int axis) {
  Shape shape;
  for (int i = 0; i < x.rank(); ++i) shape.push_back(i == axis ? x.size(i) : 1);
  return reshape(arange(0, x.size(axis), 1, DType::i64, x.device()), shape);
}

// join: maximum or minimum.
ValuesIndices extremes(const char* name, const Tensor& x, int axis, Tensor (*join)(const Tensor&, const Tensor&)) {
  const int along = scanned_axis(name, x, axis);
  if (!x.rank()) return {clone(x), zeros({}, DType::i64, x.device())};
  Tensor index;
  {
    const NoGrad unrecorded;
    const Tensor numbers = x.dtype() == DType::boolean ? cast(x, DType::i64) : ungraphed(x);
    const Tensor own = logical_or(eq(numbers, scan(numbers, along, join)), isnan(numbers));
    index = scan(where(own, places_along(x, along), 0), along, maximum);
  }
  return {gather(x, along, index), index};
}
}  // namespace

ValuesIndices cummax(const Tensor& x, int axis) { return extremes("cummax", x, axis, maximum); }
ValuesIndices cummin(const Tensor& x, int axis) { return extremes("cummin", x, axis, minimum); }

Tensor diff(const Tensor& x, int64_t n, int axis, const Tensor& prepend, const Tensor& append) {
  require_defined(x, "diff");
  if (n < 0 || !x.rank())
    refuse("diff", "n is " + std::to_string(n) + " and x has shape " + x.shape().text() +
                       ": expected an n of 0 or more, and one axis or more");
  const int at = normal_axis(axis, x.rank(), "diff");
  if (!n) return x;
  if (n > 1 && are_halves(x)) return rounded_once(x, diff, x, n, at, prepend, append);
  std::vector<Tensor> parts;
  for (const Tensor& each : {prepend, x, append})
    if (each.defined()) parts.push_back(each);
  Tensor out = parts.size() == 1 ? x : cat(parts, at);
  n = std::min(n, out.size(at) + 1);  // nothing is left then
  for (int64_t i = 0; i < n; ++i) {
    const int64_t size = out.size(at);
    const Tensor after = slice(out, at, 1, size), before = slice(out, at, 0, std::max<int64_t>(size - 1, 0));
    out = out.dtype() == DType::boolean ? ne(after, before) : sub(after, before);
  }
  return out;
}

}  // namespace plugrad
