#include <plugrad/ops/powers.hpp>

#include <core/ops/autocast_rules.hpp>
#include <core/ops/complex_functions.hpp>
#include <core/ops/infinity.hpp>
#include <core/ops/run.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/elementwise.hpp>

#include <numbers>

namespace plugrad {
namespace {
// W. Kahan's formulas, as in the HP-15C Advanced Functions Handbook (1982): the errors of u = 1 + x, or of e^x, in the
// numerator and in the denominator cancel.
Tensor accurate_log1p(const Tensor& x) {
  const Tensor u = add(x, 1), ratio = mul(log(u), div(x, sub(u, 1)));
  return where(eq(u, 1), x, where(lt(u, kInfinity), ratio, log(u)));
}
Tensor accurate_expm1(const Tensor& x) {
  const Tensor u = exp(x), difference = sub(u, 1);
  const Tensor ratio = mul(difference, div(x, log(u)));
  const Tensor plain = where(eq(difference, -1), -1, where(lt(u, kInfinity), ratio, u));
  return where(eq(u, 1), x, plain);
}

// Rounds once: the formulas' intermediate results are not rounded to halves.
Tensor in_accumulator(const Tensor& x, Tensor (*formula)(const Tensor&),
                      complex_numbers::Parts (*of_complex)(const complex_numbers::Parts&)) {
  const NoGrad unrecorded;
  if (is_complex(x.dtype())) return complex_numbers::of_parts(of_complex, x);
  return cast(formula(cast(x, accumulator_of(x.dtype()))), x.dtype());
}
}  // namespace

Tensor square(const Tensor& x) {
  require_defined(x, "square");
  if (x.dtype() == DType::boolean) return cast(x, DType::i64);
  return mul(x, x);
}
Tensor reciprocal(const Tensor& x) {
  if (autocasting()) [[unlikely]]
    return in_f32(reciprocal, x);
  return div(1, x);
}
Tensor rsqrt(const Tensor& x) {
  if (autocasting()) [[unlikely]]
    return in_f32(rsqrt, x);
  if (are_halves(x)) return rounded_once(x, rsqrt, x);
  return div(1, sqrt(x));
}
Tensor exp2(const Tensor& x) {
  if (autocasting()) [[unlikely]]
    return in_f32(exp2, x);
  return pow(2.0, x);
}
Tensor log2(const Tensor& x) {
  if (autocasting()) [[unlikely]]
    return in_f32(log2, x);
  if (are_halves(x)) return rounded_once(x, log2, x);
  return mul(log(x), std::numbers::log2e);
}
Tensor log10(const Tensor& x) {
  if (autocasting()) [[unlikely]]
    return in_f32(log10, x);
  if (are_halves(x)) return rounded_once(x, log10, x);
  return mul(log(x), std::numbers::log10e);
}

Tensor expm1(const Tensor& x) {
  if (autocasting()) [[unlikely]]
    return in_f32(expm1, x);
  static constexpr auto kRule =
      rule("expm1", gradient<kInput0>([](const Tensor& grad, const Tensor& x) { return mul(grad, exp(x)); }));
  require_defined(x, "expm1");
  if (!is_inexact(dtype_of(x))) return expm1(promoted_to_floating(x));
  return differentiable(kRule, in_accumulator(x, accurate_expm1, complex_numbers::expm1), x);
}

Tensor log1p(const Tensor& x) {
  if (autocasting()) [[unlikely]]
    return in_f32(log1p, x);
  static constexpr auto kRule =
      rule("log1p", gradient<kInput0>([](const Tensor& grad, const Tensor& x) { return div(grad, add(x, 1)); }));
  require_defined(x, "log1p");
  if (!is_inexact(dtype_of(x))) return log1p(promoted_to_floating(x));
  return differentiable(kRule, in_accumulator(x, accurate_log1p, complex_numbers::log1p), x);
}

}  // namespace plugrad
