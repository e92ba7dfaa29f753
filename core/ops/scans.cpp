#include <plugrad/ops/scans.hpp>

#include <core/ops/run.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/views.hpp>

namespace plugrad {
namespace {
// Joins each element with the one `step` before it, for step = 1, 2, 4, ... (Hillis and Steele, "Data parallel algorithms",
// 1986).
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
DType summed_dtype(const Tensor& x) { return is_floating(x.dtype()) ? x.dtype() : DType::i64; }

Tensor reversed(const Tensor& x, int axis) { return slice(x, axis, -1, -x.size(axis) - 1, -1); }
}  // namespace

Tensor cumsum(const Tensor& x, int axis) {
  static constexpr auto kRule =
      rule("cumsum", gradient<kPayload>([](const Tensor& grad, int along) {
             return reversed(cumsum(reversed(grad, along), along), along);
           }));
  const int along = scanned_axis("cumsum", x, axis);
  if (!x.rank()) return cast(clone(x), summed_dtype(x));
  Tensor sums;
  {
    const NoGrad unrecorded;
    const DType dtype = summed_dtype(x);
    sums = cast(scan(cast(x, accumulator_of(dtype)), along, add), dtype);
    if (sums.is_same(x)) sums = clone(x);
  }
  return differentiable(kRule, along, std::move(sums), x);
}

Tensor cumprod(const Tensor& x, int axis) {
  const int along = scanned_axis("cumprod", x, axis);
  if (!x.rank()) return cast(clone(x), summed_dtype(x));
  // A product of halves may be one although a part of it is infinite.
  const DType dtype = summed_dtype(x);
  const Tensor products = cast(scan(cast(x, accumulator_of(dtype)), along, mul), dtype);
  return products.is_same(x) ? clone(x) : products;
}

}  // namespace plugrad
