// The gamma function's logarithm and its derivatives.
#include <core/ops/infinity.hpp>
#include <core/ops/native_or.hpp>
#include <core/ops/wide.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/logic.hpp>
#include <plugrad/ops/powers.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/rounding.hpp>
#include <plugrad/ops/special.hpp>
#include <plugrad/ops/trigonometry.hpp>

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

namespace plugrad {
namespace {
using std::numbers::pi;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int kShift = 8;  // the series converge from here on

// pi times the distance from the nearest whole number.
Tensor angle_of(const Tensor& x) { return mul(sub(x, round(x)), pi); }

// For 1 / 2 <= x < kShift. Whole steps of gamma(x + 1) = x gamma(x) lead to x = 2 + t, |t| <= 1 / 2, where the logarithm is
// (1 - 0.5772...) t + the sum of (-1)^k (zeta(k) - 1) / k t^k for k = 2, 3, ... (DLMF 5.7.3). No term cancels another one.
Tensor log_of_small(const Tensor& x) {
  static constexpr double kSeries[] = {
      0.42278433509846713939,     0.32246703342411321824,     -0.067352301053198095133,  0.020580808427784547879,
      -0.0073855510286739852663,  0.0028905103307415232858,   -0.0011927539117032609771, 0.00050966952474304242234,
      -0.00022315475845357937976, 0.000099457512781808533715, -0.0000449262367381331417, 0.000020507212775670691553,
      -9.439488275268395904e-6,   4.3748667899074878042e-6,   -2.0392157538013662368e-6, 9.5514121304074198329e-7,
      -4.4924691987645660433e-7,  2.1207184805554665869e-7,   -1.0043224823968099609e-7, 4.7698101693639805658e-8,
      -2.271109460894316491e-8,   1.0838659214896954091e-8,   -5.1834750419700466551e-9, 2.4836745438024783172e-9,
      -1.1921401405860912074e-9,  5.7313672416788620133e-10,  -2.7595228851242331452e-10};
  const Tensor steps = sub(floor(add(x, 0.5)), 2), t = sub(sub(x, 2), steps);
  Tensor product = ones_like(x);
  for (int i = 1; i < kShift - 1; ++i) product = where(ge(steps, i), mul(product, sub(x, i)), product);
  const Tensor above = where(lt(steps, 0), neg(log1p(t)), log(product));
  return add(mul(t, polynomial(t, kSeries)), above);
}

// Stirling's series, and log_of_small. For x >= 1 / 2.
Tensor log_of_positive(const Tensor& x) {
  constexpr double kSeries[] = {1. / 12, -1. / 360, 1. / 1260, -1. / 1680, 1. / 1188, -691. / 360360, 1. / 156};
  const Tensor is_small = lt(x, kShift), z = where(is_small, kShift, x);
  const Tensor inverse = div(1, z), series = mul(polynomial(mul(inverse, inverse), kSeries), inverse);
  const Tensor rest = add(series, 0.5 * std::log(2 * pi));
  const Tensor logarithm = log(z), whole = sub(mul(z, sub(logarithm, 1)), mul(logarithm, 0.5));
  return where(is_small, log_of_small(where(is_small, x, 2)), where(eq(x, kInfinity), kInfinity, add(whole, rest)));
}

// gamma(x) gamma(1 - x) = pi / sin(pi x).
Tensor log_gamma(const Tensor& x) {
  const Tensor is_low = lt(x, 0.5), positive = log_of_positive(where(is_low, sub(1, x), x));
  // Near 0 it is -log |x|: pi times the smallest numbers is rounded.
  const Tensor turned = sub(sub(std::log(pi), log(abs(sin(angle_of(x))))), positive), size = abs(x);
  const Tensor reflected = where(lt(size, 1e-20), neg(log(size)), turned);
  const Tensor is_pole = logical_or(isinf(x), logical_and(le(x, 0), eq(x, round(x))));
  return where(is_pole, kInfinity, where(is_low, reflected, positive));
}

Tensor digamma_of_positive(const Tensor& x) {
  constexpr double kSeries[] = {1. / 12, -1. / 120, 1. / 252, -1. / 240, 1. / 132, -691. / 32760, 1. / 12};
  const Tensor is_small = lt(x, kShift), start = where(is_small, x, 1), z = where(is_small, add(x, kShift), x);
  Tensor steps = div(1, start);
  for (int i = 1; i < kShift; ++i) steps = add(steps, div(1, add(start, i)));
  const Tensor inverse = div(1, z), square = mul(inverse, inverse);
  const Tensor whole = sub(sub(log(z), mul(inverse, 0.5)), mul(polynomial(square, kSeries), square));
  return sub(whole, where(is_small, steps, 0));
}

// digamma(1 - x) - digamma(x) = pi / tan(pi x).
Tensor digamma_of(const Tensor& x) {
  const Tensor is_low = lt(x, 0), positive = digamma_of_positive(where(is_low, sub(1, x), x));
  const Tensor reflected = sub(positive, div(pi, tan(angle_of(x))));
  return where(is_low, where(eq(x, round(x)), kNan, reflected), positive);
}

// The sum of (x + k)^-s for k = 0, 1, ... and a whole s > 1, by Euler's and Maclaurin's formula. For x > 0.
Tensor sum_of_powers(const Tensor& x, double s) {
  // 1 / 12, -1 / 720, ...: Bernoulli's numbers divided by factorials.
  constexpr double kSeries[] = {8.3333333333333333e-2,  -1.3888888888888889e-3, 3.3068783068783069e-5,
                                -8.2671957671957672e-7, 2.0876756987868099e-8,  -5.2841901386874932e-10,
                                1.3382536530684679e-11, -3.3896802963225829e-13};
  Tensor sum = pow(x, -s);
  for (int k = 1; k < kShift; ++k) sum = add(sum, pow(add(x, k), -s));
  const Tensor z = add(x, kShift), power = pow(z, -s), inverse = div(1, z);
  Tensor term = mul(power, inverse), tail = add(div(pow(z, 1 - s), s - 1), mul(power, 0.5));
  double factor = s;
  for (int j = 0; j < 8; ++j) {
    tail = add(tail, mul(term, factor * kSeries[j]));
    term = mul(mul(term, inverse), inverse);
    factor *= (s + 2 * j + 1) * (s + 2 * j + 2);
  }
  return add(sum, tail);
}

// The n-th derivative of pi cot(pi x) as a polynomial of cot(pi x): the derivative of cot(y) is -1 - cot(y)^2.
std::vector<double> cotangent_derivative(int64_t n) {
  std::vector<double> c{0, pi};
  for (; n > 0; --n) {
    std::vector<double> next(c.size() + 1, 0.0);
    for (size_t i = 1; i < c.size(); ++i) {
      next[i - 1] -= pi * static_cast<double>(i) * c[i];
      next[i + 1] -= pi * static_cast<double>(i) * c[i];
    }
    c = std::move(next);
  }
  return c;
}

Tensor polygamma_of(const Tensor& x, int64_t n) {
  const double s = static_cast<double>(n + 1), size = std::tgamma(s), sign = n % 2 ? 1 : -1;
  const Tensor is_low = lt(x, 0), sum = sum_of_powers(where(is_low, sub(1, x), x), s);
  const Tensor positive = mul(sum, sign * size);
  const Tensor cotangent = div(1, tan(angle_of(x)));
  const Tensor reflected = sub(mul(positive, -sign), polynomial(cotangent, cotangent_derivative(n)));
  return where(is_low, reflected, positive);
}
}  // namespace

Tensor lgamma(const Tensor& x) {
  static constexpr auto kRule =
      rule("lgamma", gradient<kInput0>([](const Tensor& grad, const Tensor& x) { return mul(grad, digamma(x)); }));
  return differentiable(kRule, in_wide("lgamma", x, log_gamma), x);
}

Tensor digamma(const Tensor& x) {
  static constexpr auto kRule =
      rule("digamma", gradient<kInput0>([](const Tensor& grad, const Tensor& x) { return mul(grad, polygamma(1, x)); }));
  return differentiable(kRule, in_wide("digamma", x, digamma_of), x);
}

Tensor polygamma(int64_t n, const Tensor& x) {
  static constexpr auto kRule =
      rule("polygamma", gradient<kInput0, kPayload>(
                            [](const Tensor& grad, const Tensor& x, int64_t n) { return mul(grad, polygamma(n + 1, x)); }));
  constexpr int64_t kMost = 169;  // the derivative needs n + 1, and 170! is the largest factorial of an f64
  if (n < 0 || n > kMost + 1) refuse("polygamma", "n is " + std::to_string(n) + ": give 0 to " + std::to_string(kMost));
  if (n == 0) return digamma(x);
  return differentiable(kRule, n, in_wide("polygamma", x, [n](const Tensor& wide) { return polygamma_of(wide, n); }), x);
}

Tensor mvlgamma(const Tensor& x, int64_t p) {
  require_defined(x, "mvlgamma");
  constexpr int64_t kMost = 1 << 16;
  if (p < 1 || p > kMost) refuse("mvlgamma", "p is " + std::to_string(p) + ": give 1 to " + std::to_string(kMost));
  const Tensor wide = at_least_f32(promoted_to_floating(x));
  const Tensor halves = mul(arange(0, p, 1, wide.dtype(), wide.device()), 0.5);
  const Tensor terms = lgamma(sub(reshape(wide, {wide.count(), 1}), halves));
  const Tensor sum = reshape(plugrad::sum(terms, {1}), wide.shape());
  const double constant = 0.25 * static_cast<double>(p) * static_cast<double>(p - 1) * std::log(pi);
  return cast(add(sum, constant), floating_type(x.dtype()));
}

}  // namespace plugrad
