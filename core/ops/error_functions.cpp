// The error function's complement and reverse, and the normal distribution.
#include <core/ops/infinity.hpp>
#include <core/ops/native_or.hpp>
#include <core/ops/wide.hpp>
#include <plugrad/ops/logic.hpp>
#include <plugrad/ops/powers.hpp>
#include <plugrad/ops/rounding.hpp>
#include <plugrad/ops/special.hpp>

#include <limits>
#include <numbers>

namespace plugrad {
namespace {
constexpr double kInverseRootPi = std::numbers::inv_sqrtpi;

// (1 + 2 x) e^(x^2) erfc(x) as a Chebyshev series of (x - 3.75) / (x + 3.75), the variable of M. Shepherd and
// J. Laframboise, "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x in 0 <= x < infinity", 1981.
constexpr double kScaled[] = {
    1.17757893456740175,       -0.00459005458064647733, -0.0842491333665179156,   0.0592099399981918905,
    -0.0266586684353057523,    0.00907499767070526509,  -0.00241316354041760819,  0.000490775836525808632,
    -0.0000691697330250120637, 4.13902798607301017e-6,  7.74038306619849067e-7,   -2.18864010492343957e-7,
    1.07649994656709104e-8,    4.5219598112182869e-9,   -7.75440020883135111e-10, -6.31808834088668449e-11,
    2.8687950109306699e-11,    1.94558685457773472e-13, -9.65469674843343891e-13, 3.25254814814873984e-14,
    3.34781194828680539e-14,   -1.8645628804193131e-15, -1.25079505306886471e-15, 7.41823525662404346e-17,
    5.06814890479611132e-17};

// For x >= 0.
Tensor scaled_complement(const Tensor& x) {
  const Tensor place = sub(1, div(7.5, add(x, 3.75)));
  return div(chebyshev(place, kScaled), add(mul(x, 2), 1));
}

// e^(factor x^2), |factor| 1 or 1 / 2: the square of the leading bits is exact, and the rest of the exponent is small.
Tensor exp_of_square(const Tensor& x, double factor) {
  const Tensor size = minimum(abs(x), 40), leading = mul(round(mul(size, 16)), 1. / 16);
  const Tensor rest = mul(sub(size, leading), add(size, leading));
  return mul(exp(mul(mul(leading, leading), factor)), exp(mul(rest, factor)));
}
Tensor bell(const Tensor& x) { return exp_of_square(x, -1); }

Tensor complement(const Tensor& x) {
  const Tensor size = abs(x), tail = mul(bell(size), scaled_complement(size));
  return where(lt(size, 0.5), sub(1, erf(x)), where(lt(x, 0), sub(2, tail), tail));
}

Tensor scaled_complement_of_any(const Tensor& x) {
  const Tensor positive = scaled_complement(abs(x));
  return where(lt(x, 0), sub(mul(exp_of_square(x, 1), 2), positive), positive);
}

// The y >= 0 with erf(y) = size and erfc(y) = rest = 1 - size. w: -log(rest (1 + size)), below 5. M. Giles,
// "Approximating the erfinv function", 2010, and two of Halley's steps.
Tensor inverse_near_zero(const Tensor& size, const Tensor& rest, const Tensor& w) {
  constexpr double kNear[] = {1.50140941,      0.246640727,    -0.00417768164, -0.00125372503, 0.00021858087,
                              -4.39150654e-06, -3.5233877e-06, 3.43273939e-07, 2.81022636e-08};
  Tensor y = mul(polynomial(sub(w, 2.5), kNear), size);
  for (int step = 0; step < 2; ++step) {
    const Tensor error = where(lt(size, 0.5), sub(erf(y), size), sub(rest, complement(y)));
    const Tensor turn = div(error, mul(bell(y), 2 * kInverseRootPi));
    y = sub(y, div(turn, add(mul(y, turn), 1)));
  }
  return y;
}

// The same for w from 5 on. log erfc(y) = log(erfcx(y)) - y^2 is nearly a parabola, so Newton's steps find where it equals
// log(rest), also where erfc(y) is as small as numbers can be. They begin with the asymptotic
// y^2 = L - log(pi L) / 2, L = -log(rest).
Tensor inverse_in_tail(const Tensor& rest) {
  const Tensor level = neg(log(rest));
  Tensor y = sqrt(sub(level, mul(log(mul(level, std::numbers::pi)), 0.5)));
  for (int step = 0; step < 4; ++step) {
    const Tensor scaled = scaled_complement(y);
    const Tensor error = add(sub(log(scaled), mul(y, y)), level);
    y = add(y, mul(mul(error, scaled), 0.5 / kInverseRootPi));
  }
  return y;
}

Tensor inverse_of(const Tensor& size, const Tensor& rest) {
  const Tensor w = neg(log(mul(rest, add(size, 1)))), is_near = lt(w, 5);
  const Tensor near = inverse_near_zero(size, rest, minimum(w, 5));
  const Tensor y = where(is_near, near, inverse_in_tail(where(is_near, 1e-3, rest)));
  return where(eq(rest, 0), kInfinity, y);
}

Tensor inverse(const Tensor& x) {
  const Tensor size = abs(x), y = inverse_of(size, sub(1, size));
  return where(eq(x, 0), x, mul(sign(x), where(gt(size, 1), std::numeric_limits<double>::quiet_NaN(), y)));
}

// -sqrt(2) times the y with erfc(y) = 2 p.
Tensor normal_inverse(const Tensor& p) {
  const Tensor is_low = lt(p, 0.5), rest = mul(where(is_low, p, sub(1, p)), 2);
  const Tensor y = mul(inverse_of(sub(1, rest), rest), std::numbers::sqrt2);
  const Tensor outside = logical_or(lt(p, 0), gt(p, 1));
  return where(outside, std::numeric_limits<double>::quiet_NaN(), where(is_low, neg(y), y));
}

// The part of the normal distribution beyond x. The exponent is of x itself, because x / sqrt(2) is rounded.
Tensor normal_beyond(const Tensor& x) {
  const Tensor turned = mul(x, 1 / std::numbers::sqrt2), size = abs(turned);
  const Tensor tail = mul(mul(exp_of_square(x, -0.5), scaled_complement(size)), 0.5);
  return where(lt(size, 0.5), mul(sub(1, erf(turned)), 0.5), where(lt(x, 0), sub(1, tail), tail));
}

Tensor log_normal(const Tensor& x) {
  const Tensor far = minimum(x, 0), scaled = scaled_complement(mul(far, -1 / std::numbers::sqrt2));
  const Tensor low = sub(log(mul(scaled, 0.5)), mul(mul(far, far), 0.5));
  return where(lt(x, -1), low, log1p(neg(normal_beyond(x))));
}
}  // namespace

Tensor erfc(const Tensor& x) {
  static constexpr auto kRule = rule("erfc", gradient<kInput0>([](const Tensor& grad, const Tensor& x) {
                                       return mul(grad, mul(bell(x), -2 * kInverseRootPi));
                                     }));
  return differentiable(kRule, in_wide("erfc", x, complement), x);
}

namespace {
// 2 x erfcx(x) - 2 / sqrt(pi), where x is large as -1 / (sqrt(pi) x^2) times the sum of (-1)^n (2 n + 1)!! / (2 x^2)^n.
Tensor slope_of_scaled(const Tensor& x, const Tensor& y) {
  static constexpr double kSeries[] = {1, -3, 15, -105, 945, -10395, 135135, -2027025, 34459425};
  const Tensor is_far = gt(x, 30), inverse = div(1, where(is_far, x, 30)), square = mul(inverse, inverse);
  const Tensor far = mul(mul(square, -kInverseRootPi), polynomial(mul(square, 0.5), kSeries));
  return where(is_far, far, sub(mul(mul(x, y), 2), 2 * kInverseRootPi));
}
}  // namespace

Tensor erfcx(const Tensor& x) {
  static constexpr auto kRule =
      rule("erfcx", gradient<kInput0, kOutput>([](const Tensor& grad, const Tensor& x, const Tensor& y) {
             return mul(grad, slope_of_scaled(x, y));
           }));
  return differentiable(kRule, in_wide("erfcx", x, scaled_complement_of_any), x);
}

Tensor erfinv(const Tensor& x) {
  static constexpr auto kRule = rule("erfinv", gradient<kOutput>([](const Tensor& grad, const Tensor& y) {
                                       return mul(grad, mul(exp_of_square(y, 1), 0.5 / kInverseRootPi));
                                     }));
  return differentiable(kRule, in_wide("erfinv", x, inverse), x);
}

Tensor ndtr(const Tensor& x) {
  constexpr double kRootHalf = 1 / std::numbers::sqrt2;
  static constexpr auto kRule = rule("ndtr", gradient<kInput0>([](const Tensor& grad, const Tensor& x) {
                                       return mul(grad, mul(exp_of_square(x, -0.5), kInverseRootPi * kRootHalf));
                                     }));
  return differentiable(kRule, in_wide("ndtr", x, [](const Tensor& wide) { return normal_beyond(neg(wide)); }), x);
}

Tensor log_ndtr(const Tensor& x) {
  // The density divided by the distribution, without quotients of small numbers. Far below it is -x.
  static constexpr auto kRule = rule("log_ndtr", gradient<kInput0>([](const Tensor& grad, const Tensor& x) {
                                       constexpr double kFar = -1e9;
                                       const Tensor scaled = erfcx(mul(maximum(x, kFar), -1 / std::numbers::sqrt2));
                                       const Tensor ratio = div(kInverseRootPi * std::numbers::sqrt2, scaled);
                                       return mul(grad, where(lt(x, kFar), neg(x), ratio));
                                     }));
  return differentiable(kRule, in_wide("log_ndtr", x, log_normal), x);
}

Tensor ndtri(const Tensor& x) {
  static constexpr auto kRule = rule("ndtri", gradient<kOutput>([](const Tensor& grad, const Tensor& y) {
                                       const Tensor inverse = exp_of_square(y, 0.5);
                                       return mul(grad, mul(inverse, std::numbers::sqrt2 / kInverseRootPi));
                                     }));
  return differentiable(kRule, in_wide("ndtri", x, normal_inverse), x);
}

}  // namespace plugrad
