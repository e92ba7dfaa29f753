#include <plugrad/ops/special_values.hpp>

#include <core/ops/argument.hpp>
#include <core/ops/infinity.hpp>
#include <core/ops/run.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/complex.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/logic.hpp>
#include <plugrad/ops/rounding.hpp>
#include <plugrad/ops/trigonometry.hpp>

#include <cmath>
#include <limits>
#include <numbers>

namespace plugrad {
namespace {
double largest_of(DType dtype) {
  const DTypeInfo& info = *dtype_info(static_cast<uint8_t>(dtype));
  const int exponent = (1 << (info.exponent_bits - 1)) - 1;
  return std::ldexp(2 - std::ldexp(1.0, 1 - info.digits), exponent);
}

Tensor nowhere(const Tensor& x) { return zeros(x.shape(), DType::boolean, x.device()); }
}  // namespace

Tensor nan_to_num(const Tensor& x, double nan, std::optional<double> posinf, std::optional<double> neginf) {
  require_defined(x, "nan_to_num");
  if (is_complex(x.dtype()))
    return complex(nan_to_num(real(x), nan, posinf, neginf), nan_to_num(imag(x), nan, posinf, neginf));
  if (!is_floating(x.dtype())) return clone(x);
  const Tensor numbers = where(isnan(x), nan, x);
  const Tensor below = where(eq(x, kInfinity), posinf.value_or(largest_of(x.dtype())), numbers);
  return where(eq(x, -kInfinity), neginf.value_or(-largest_of(x.dtype())), below);
}

Tensor signbit(const Tensor& x) {
  require_real("signbit", x);
  const NoGrad constant;
  const Tensor plain = x.detach();
  if (x.dtype() == DType::boolean) return nowhere(x);
  if (!is_floating(x.dtype())) return lt(plain, 0);
  // 1 / -0 is -infinity.
  return logical_or(lt(plain, 0), logical_and(eq(plain, 0), lt(div(1, plain), 0)));
}

Tensor isposinf(const Tensor& x) {
  require_real("isposinf", x);
  return is_floating(x.dtype()) ? eq(x, kInfinity) : nowhere(x);
}
Tensor isneginf(const Tensor& x) {
  require_real("isneginf", x);
  return is_floating(x.dtype()) ? eq(x, -kInfinity) : nowhere(x);
}
Tensor isreal(const Tensor& x) {
  require_defined(x, "isreal");
  if (is_complex(x.dtype())) return eq(imag(x), 0);
  return ones(x.shape(), DType::boolean, x.device());
}

Tensor angle(const Tensor& x) {
  require_defined(x, "angle");
  if (is_complex(x.dtype())) return atan2(imag(x), real(x));
  const Tensor floating = promoted_to_floating(x), none = mul(where(isfinite(floating), floating, 1), 0);
  const Tensor positive = where(isnan(floating), std::numeric_limits<double>::quiet_NaN(), abs(none));
  return where(lt(floating, 0), std::numbers::pi, positive);
}

Tensor positive(const Tensor& x) {
  require_defined(x, "positive");
  if (x.dtype() == DType::boolean) refuse("positive", "x is bool, expected a dtype of numbers: cast it");
  return x;
}
Tensor frac(const Tensor& x) {
  require_floating("frac", x);
  return sub(x, trunc(x));
}
Tensor deg2rad(const Tensor& x) { return mul(promoted_to_floating(x), std::numbers::pi / 180); }
Tensor rad2deg(const Tensor& x) { return mul(promoted_to_floating(x), 180 / std::numbers::pi); }

Tensor logit(const Tensor& x, std::optional<double> eps) {
  require_defined(x, "logit");
  const Tensor wide = at_least_f32(promoted_to_floating(x));
  const Tensor limited = eps ? where(lt(wide, *eps), *eps, where(gt(wide, 1 - *eps), 1 - *eps, wide)) : wide;
  // Not the logarithm of the quotient: its gradient at 0 and 1 is NaN.
  return cast(sub(log(limited), log(sub(1, limited))), floating_type(x.dtype()));
}

bool allclose(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
  return all(isclose(a, b, rtol, atol, equal_nan)).item<bool>();
}

bool equal(const Tensor& a, const Tensor& b) {
  require_defined(a, "equal");
  require_defined(b, "equal");
  return a.shape() == b.shape() && all(eq(a, b)).item<bool>();
}

}  // namespace plugrad
