#include <plugrad/ops/trigonometry.hpp>

#include <core/ops/argument.hpp>
#include <core/ops/complex_functions.hpp>
#include <core/ops/infinity.hpp>
#include <core/ops/native_or.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/logic.hpp>
#include <plugrad/ops/powers.hpp>
#include <plugrad/ops/rounding.hpp>

#include <array>
#include <limits>
#include <numbers>

namespace plugrad {
namespace {

// --- Compositions, for devices without these ops. The polynomials are minimax fits.

// pi / 2 in three parts; the products of the first two with a whole number below 2^13 (f64: 2^20) are exact. The parts are
// from S. Moshier's Cephes and from fdlibm.
using Parts = std::array<double, 3>;
constexpr Parts kSinglePrecision{1.5703125, 4.837512969970703125e-4, 7.54978995489188216e-8};
constexpr Parts kDoublePrecision{1.57079632673412561417, 6.07710050630396597660e-11, 2.02226624879595063154e-21};

Tensor nearest_quarter(const Tensor& x) { return round(mul(x, 2 * std::numbers::inv_pi)); }
Tensor without_quarters(Tensor x, const Tensor& quarters) {
  for (const double part : x.dtype() == DType::f64 ? kDoublePrecision : kSinglePrecision) x = sub(x, mul(quarters, part));
  return x;
}

// The sine of x + shift pi / 2. A second reduction keeps the inexact results of huge arguments within [-1, 1].
Tensor composed_sine(const Tensor& x, int shift) {
  static constexpr double kSine[] = {1,
                                     -0.16666666666666627706,
                                     0.0083333333333212899671,
                                     -0.00019841269828873866393,
                                     2.7557313357363372092e-6,
                                     -2.5050704258636038579e-8,
                                     1.5893597012958531101e-10};
  static constexpr double kCosine[] = {1,
                                       -0.5,
                                       0.041666666666666591106,
                                       -0.0013888888888872606584,
                                       0.000024801587288497060038,
                                       -2.7557314058036799194e-7,
                                       2.087568208078627775e-9,
                                       -1.13574591983523032e-11};
  const Tensor first = nearest_quarter(x), near = without_quarters(x, first);
  const Tensor second = nearest_quarter(near), angle = without_quarters(near, second);
  const Tensor quarter = add(add(first, second), shift), turned = sub(quarter, mul(floor(mul(quarter, 0.25)), 4));
  const Tensor square = mul(angle, angle);
  const Tensor sine = mul(angle, polynomial(square, kSine)), cosine = polynomial(square, kCosine);
  const Tensor odd = logical_or(eq(turned, 1), eq(turned, 3));
  const Tensor size = where(odd, cosine, sine);
  return where(ge(turned, 2), neg(size), size);
}

// atan(x) = atan(c) + atan((x - c) / (1 + c x)) with c of 0, 1, or infinity.
Tensor composed_atan(const Tensor& x) {
  static constexpr double kAtan[] = {1,
                                     -0.33333333333333199122,
                                     0.19999999999954084724,
                                     -0.14285714280248695089,
                                     0.1111111078614487804,
                                     -0.090908978366138647705,
                                     0.076920616395994220239,
                                     -0.066631204082435382142,
                                     0.058480090704030634802,
                                     -0.050398461187326777226,
                                     0.038078334502666591172,
                                     -0.017922292362840945117};
  const Tensor size = abs(x), beyond = gt(size, std::numbers::sqrt2 + 1), middle = gt(size, std::numbers::sqrt2 - 1);
  const Tensor above = where(beyond, -1, where(middle, sub(size, 1), size));
  const Tensor below = where(beyond, size, where(middle, add(size, 1), 1));
  const Tensor t = div(above, below), near = mul(t, polynomial(mul(t, t), kAtan));
  const Tensor whole = add(near, where(beyond, std::numbers::pi / 2, where(middle, std::numbers::pi / 4, zeros_like(x))));
  return where(eq(x, 0), x, mul(sign(x), whole));
}

using ComplexFormula = complex_numbers::Parts (*)(const complex_numbers::Parts&);

// --- Formulas. Their intermediate results are not rounded to halves.

Tensor widely(const Tensor& x, Tensor (*formula)(const Tensor&), ComplexFormula of_complex) {
  const NoGrad unrecorded;
  if (is_complex(x.dtype())) return complex_numbers::of_parts(of_complex, x);
  const Tensor floating = promoted_to_floating(x);
  return cast(formula(cast(floating, accumulator_of(floating.dtype()))), floating.dtype());
}
// Where x is negative or -0.
Tensor is_negative(const Tensor& x) { return lt(where(eq(x, 0), div(1, x), x), 0); }

constexpr double kLarge = 20;  // from here on e^-x does not change e^x + e^-x
constexpr double kHuge = 1e9;  // from here on x^2 + 1 is x^2

// e^x / 2 without overflow before the result does.
Tensor half_of_exp(const Tensor& x) {
  const Tensor root = exp(mul(x, 0.5));
  return mul(mul(root, 0.5), root);
}
Tensor formula_of_sinh(const Tensor& x) {
  const Tensor size = abs(x), e = expm1(minimum(size, kLarge));
  const Tensor near = mul(add(e, div(e, add(e, 1))), 0.5);
  return where(eq(x, 0), x, mul(sign(x), where(gt(size, kLarge), half_of_exp(size), near)));
}
Tensor formula_of_cosh(const Tensor& x) {
  const Tensor size = abs(x), e = exp(minimum(size, kLarge));
  return where(gt(size, kLarge), half_of_exp(size), mul(add(e, div(1, e)), 0.5));
}
Tensor formula_of_asinh(const Tensor& x) {
  const Tensor size = abs(x), square = mul(size, size);
  const Tensor near = log1p(add(size, div(square, add(sqrt(add(square, 1)), 1))));
  const Tensor inverse = where(gt(size, kHuge), add(log(size), std::numbers::ln2), near);
  return where(eq(x, 0), x, mul(sign(x), inverse));
}
Tensor formula_of_acosh(const Tensor& x) {
  const Tensor t = sub(x, 1), near = log1p(add(t, sqrt(mul(t, add(t, 2)))));
  const Tensor inverse = where(gt(x, kHuge), add(log(x), std::numbers::ln2), near);
  return where(lt(x, 1), std::numeric_limits<double>::quiet_NaN(), inverse);
}
Tensor formula_of_atanh(const Tensor& x) {
  const Tensor size = abs(x), inverse = mul(log1p(div(mul(size, 2), sub(1, size))), 0.5);
  return where(eq(x, 0), x, mul(sign(x), inverse));
}
Tensor one_less_square(const Tensor& x) { return mul(sub(1, x), add(x, 1)); }  // 1 - x^2, exact near 1
}  // namespace

// --- Functions of angles.

Tensor sin(const Tensor& x) {
  static constexpr auto kRule =
      rule("sin", gradient<kInput0>([](const Tensor& grad, const Tensor& x) { return mul(grad, cos(x)); }));
  require_defined(x, "sin");
  if (!is_inexact(dtype_of(x))) return sin(promoted_to_floating(x));
  return differentiable(kRule, native_or(Op::SIN, x, [](const Tensor& in) { return composed_sine(in, 0); }), x);
}

Tensor cos(const Tensor& x) {
  static constexpr auto kRule =
      rule("cos", gradient<kInput0>([](const Tensor& grad, const Tensor& x) { return neg(mul(grad, sin(x))); }));
  require_defined(x, "cos");
  if (!is_inexact(dtype_of(x))) return cos(promoted_to_floating(x));
  return differentiable(kRule, native_or(Op::COS, x, [](const Tensor& in) { return composed_sine(in, 1); }), x);
}

Tensor tan(const Tensor& x) {
  static constexpr auto kRule =
      rule("tan", gradient<kOutput>([](const Tensor& grad, const Tensor& y) { return mul(grad, add(mul(y, y), 1)); }));
  require_defined(x, "tan");
  return differentiable(kRule, widely(x, [](const Tensor& in) { return div(sin(in), cos(in)); }, complex_numbers::tan), x);
}

Tensor asin(const Tensor& x) {
  static constexpr auto kRule = rule(
      "asin", gradient<kInput0>([](const Tensor& grad, const Tensor& x) { return div(grad, sqrt(one_less_square(x))); }));
  require_defined(x, "asin");
  return differentiable(
      kRule, widely(x, [](const Tensor& in) { return atan(div(in, sqrt(one_less_square(in)))); }, complex_numbers::asin), x);
}

Tensor acos(const Tensor& x) {
  static constexpr auto kRule =
      rule("acos",
           gradient<kInput0>([](const Tensor& grad, const Tensor& x) { return neg(div(grad, sqrt(one_less_square(x)))); }));
  require_defined(x, "acos");
  const auto formula = [](const Tensor& in) { return mul(atan(sqrt(div(sub(1, in), add(in, 1)))), 2); };
  return differentiable(kRule, widely(x, formula, complex_numbers::acos), x);
}

Tensor atan(const Tensor& x) {
  static constexpr auto kRule =
      rule("atan", gradient<kInput0>([](const Tensor& grad, const Tensor& x) { return div(grad, add(mul(x, x), 1)); }));
  require_defined(x, "atan");
  if (!is_inexact(dtype_of(x))) return atan(promoted_to_floating(x));
  return differentiable(kRule, native_or(Op::ATAN, x, composed_atan), x);
}

namespace {
// The angle of (|x|, |y|). Equal operands may both be infinite.
Tensor angle_in_first_quadrant(const Tensor& y, const Tensor& x) {
  const Tensor ratio = where(eq(y, x), 1, div(y, x));
  return atan(where(logical_and(eq(y, 0), eq(x, 0)), 0, ratio));
}
Tensor angle(const Tensor& y, const Tensor& x) {
  const NoGrad unrecorded;
  const DType wide = accumulator_of(y.dtype());
  const Tensor above = cast(y, wide), right = cast(x, wide);
  const Tensor first = angle_in_first_quadrant(abs(above), abs(right));
  const Tensor upper = where(is_negative(right), sub(std::numbers::pi, first), first);
  return cast(where(is_negative(above), neg(upper), upper), y.dtype());
}
}  // namespace

namespace {
// of / (x^2 + y^2) without overflow or underflow of squares; 0 where the quotient has no limit, and far away.
Tensor over_square(const Tensor& of, const Tensor& y, const Tensor& x) {
  const Tensor size = maximum(abs(y.detach()), abs(x.detach()));
  const Tensor is_outside = logical_or(eq(size, 0), eq(size, kInfinity)), unit = where(is_outside, 1, size);
  const Tensor a = div(x, unit), b = div(y, unit), square = add(mul(a, a), mul(b, b));
  return where(is_outside, 0, div(div(div(of, unit), where(is_outside, 1, square)), unit));
}
}  // namespace

// The derivatives at (0, 0) are 0, as for abs.
Tensor atan2(const Tensor& y, const Tensor& x) {
  static constexpr auto kRule =
      rule("atan2", gradient<kInput0, kInput1>([](const Tensor& grad, const Tensor& y, const Tensor& x) {
             return mul(grad, over_square(x, y, x));
           }),
           gradient<kInput0, kInput1>(
               [](const Tensor& grad, const Tensor& y, const Tensor& x) { return neg(mul(grad, over_square(y, y, x))); }));
  if (!is_together(y, x)) return promoted("atan2", y, x, atan2);
  if (!is_floating(dtype_of(y))) {
    require_real("atan2", y);
    return atan2(promoted_to_floating(y), promoted_to_floating(x));
  }
  return differentiable(kRule, angle(y, x), y, x);
}

// --- Hyperbolic functions.

Tensor sinh(const Tensor& x) {
  static constexpr auto kRule =
      rule("sinh", gradient<kInput0>([](const Tensor& grad, const Tensor& x) { return mul(grad, cosh(x)); }));
  require_defined(x, "sinh");
  return differentiable(kRule, widely(x, formula_of_sinh, complex_numbers::sinh), x);
}

Tensor cosh(const Tensor& x) {
  static constexpr auto kRule =
      rule("cosh", gradient<kInput0>([](const Tensor& grad, const Tensor& x) { return mul(grad, sinh(x)); }));
  require_defined(x, "cosh");
  return differentiable(kRule, widely(x, formula_of_cosh, complex_numbers::cosh), x);
}

Tensor asinh(const Tensor& x) {
  static constexpr auto kRule = rule("asinh", gradient<kInput0>([](const Tensor& grad, const Tensor& x) {
                                       if (is_complex(x.dtype())) return div(grad, sqrt(add(mul(x, x), 1)));
                                       const Tensor size = abs(x);
                                       return div(grad, where(gt(size, kHuge), size, sqrt(add(mul(x, x), 1))));
                                     }));
  require_defined(x, "asinh");
  return differentiable(kRule, widely(x, formula_of_asinh, complex_numbers::asinh), x);
}

Tensor acosh(const Tensor& x) {
  static constexpr auto kRule = rule("acosh", gradient<kInput0>([](const Tensor& grad, const Tensor& x) {
                                       return div(grad, mul(sqrt(sub(x, 1)), sqrt(add(x, 1))));
                                     }));
  require_defined(x, "acosh");
  return differentiable(kRule, widely(x, formula_of_acosh, complex_numbers::acosh), x);
}

Tensor atanh(const Tensor& x) {
  static constexpr auto kRule =
      rule("atanh", gradient<kInput0>([](const Tensor& grad, const Tensor& x) { return div(grad, one_less_square(x)); }));
  require_defined(x, "atanh");
  return differentiable(kRule, widely(x, formula_of_atanh, complex_numbers::atanh), x);
}

}  // namespace plugrad
