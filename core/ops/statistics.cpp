#include <plugrad/ops/statistics.hpp>

#include <core/ops/argument.hpp>
#include <core/ops/autocast_rules.hpp>
#include <core/ops/infinity.hpp>
#include <core/ops/run.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/complex.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/views.hpp>

#include <algorithm>
#include <cmath>

namespace plugrad {
namespace {
// x^exponent, with derivative 0 where x is 0.
Tensor power_but_zero(const Tensor& x, double exponent) {
  const Tensor zero = eq(x, 0), base = where(zero, 1, x);
  return where(zero, exponent < 0 ? kInfinity : 0, exponent == 0.5 ? sqrt(base) : pow(base, exponent));
}

// The largest elements, or 0 where they are infinite or NaN. A constant for gradients.
Tensor finite_largest(const Tensor& x, const Shape& axes) {
  const NoGrad constant;
  const Tensor largest = max(x, axes, true);
  return where(lt(abs(largest), kInfinity), largest, 0);
}

double extent_of(const Tensor& x, const Shape& axes) {
  double count = 1;
  for (const int64_t axis : axes) count *= static_cast<double>(x.size(static_cast<int>(axis)));
  return count;
}
}  // namespace

Tensor logsumexp(const Tensor& x, const Shape& axes, bool keepdim) {
  if (autocasting()) [[unlikely]]
    return in_f32(logsumexp, x, axes, keepdim);
  if (are_halves(x)) return rounded_once(x, logsumexp, x, axes, keepdim);
  require_floating("logsumexp", x);
  const Shape over = normal_axes(axes, x.rank(), "logsumexp");
  if (!x.count()) return log(sum(exp(x), over, keepdim));
  const Tensor largest = finite_largest(x, over);
  const Tensor result = add(log(sum(exp(sub(x, largest)), over, true)), largest);
  return keepdim ? result : squeeze(result, over);
}

// Neither negation overflows: -1 - x maps the smallest integer to the largest.
Tensor argmin(const Tensor& x, const Shape& axes, bool keepdim) {
  require_defined(x, "argmin");
  if (x.dtype() == DType::boolean) refuse("argmin", "x is bool, expected a dtype of numbers: cast it");
  if (!x.count() && extent_of(x, normal_axes(axes, x.rank(), "argmin")) == 0)
    refuse("argmin", "no elements to reduce: x has shape " + x.shape().text());
  const NoGrad unrecorded;
  return argmax(is_floating(x.dtype()) ? neg(x) : sub(-1, x), axes, keepdim);
}

// --- Products.

namespace {
// Multiplies the last axis by halves. The gradient of each product is right at zeros; so is the gradient of all products.
Tensor product_of_last(Tensor x) {
  while (x.size(-1) > 1) {
    const int64_t half = x.size(-1) / 2;
    const Tensor products = mul(slice(x, -1, 0, half), slice(x, -1, half, 2 * half));
    x = x.size(-1) % 2 ? cat({products, slice(x, -1, 2 * half, 2 * half + 1)}, -1) : products;
  }
  return squeeze(x, {-1});
}
}  // namespace

Tensor prod(const Tensor& x, const Shape& axes, bool keepdim) {
  if (autocasting()) [[unlikely]]
    return in_f32(prod, x, axes, keepdim);
  require_defined(x, "prod");
  // A product of halves may fit a half although a part of it is infinite.
  const DType dtype = is_inexact(x.dtype()) ? x.dtype() : DType::i64;
  const Tensor numbers = cast(x, accumulator_of(dtype));
  const Shape over = normal_axes(axes, x.rank(), "prod");
  Shape order, kept, result = x.shape();
  for (int i = 0; i < x.rank(); ++i)
    if (std::ranges::find(over, i) == over.end()) order.push_back(i), kept.push_back(x.size(i));
  int64_t count = 1;
  for (const int64_t axis : over) {
    order.push_back(axis);
    count *= x.size(static_cast<int>(axis));
    result[static_cast<size_t>(axis)] = 1;
  }
  if (!count) return cast(add(sum(numbers, over, keepdim), 1), dtype);  // recorded, unlike a constant
  const Tensor out = product_of_last(reshape(permute(numbers, order), {kept.count(), count}));
  return cast(reshape(out, keepdim ? result : kept), dtype);
}

// --- Moments and norms.

Tensor var(const Tensor& x, const Shape& axes, bool keepdim, double correction) {
  if (autocasting()) [[unlikely]]
    return in_f32(var, x, axes, keepdim, correction);
  require_inexact("var", x);
  if (is_complex(x.dtype())) return add(var(real(x), axes, keepdim, correction), var(imag(x), axes, keepdim, correction));
  const Shape over = normal_axes(axes, x.rank(), "var");
  const double count = extent_of(x, over);
  const Tensor wide = at_least_f32(x), centred = sub(wide, mean(wide, over, true));
  return cast(div(sum(mul(centred, centred), over, keepdim), std::max(count - correction, 0.0)), x.dtype());
}

Tensor stddev(const Tensor& x, const Shape& axes, bool keepdim, double correction) {
  if (autocasting()) [[unlikely]]
    return in_f32(stddev, x, axes, keepdim, correction);
  require_inexact("stddev", x);
  return cast(power_but_zero(var(at_least_f32(x), axes, keepdim, correction), 0.5), part_of(x.dtype()));
}

Tensor norm(const Tensor& x, double p, const Shape& axes, bool keepdim) {
  if (autocasting()) [[unlikely]]
    return in_f32(norm, x, p, axes, keepdim);
  require_inexact("norm", x);
  if (is_complex(x.dtype())) return norm(abs(x), p, axes, keepdim);
  if (p == kInfinity) return max(abs(x), axes, keepdim);
  if (p == -kInfinity) return min(abs(x), axes, keepdim);
  if (p == 0) return sum(where(ne(x, 0), 1, sign(x)), axes, keepdim);  // the gradient of sign is 0
  if (p == 1) return sum(abs(x), axes, keepdim);
  const Tensor wide = at_least_f32(x), powers = p == 2 ? mul(wide, wide) : power_but_zero(abs(wide), p);
  return cast(power_but_zero(sum(powers, axes, keepdim), 1 / p), x.dtype());
}

}  // namespace plugrad
