#include <core/ops/complex_functions.hpp>

#include <core/ops/infinity.hpp>
#include <core/ops/run.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/arithmetic.hpp>
#include <plugrad/ops/complex.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/logic.hpp>
#include <plugrad/ops/powers.hpp>
#include <plugrad/ops/trigonometry.hpp>

#include <cmath>
#include <numbers>

namespace plugrad::complex_numbers {
namespace {
Parts turned(const Parts& x) { return {neg(x.im), x.re}; }       // i x
Parts turned_back(const Parts& x) { return {x.im, neg(x.re)}; }  // -i x
Parts conjugate(const Parts& x) { return {x.re, neg(x.im)}; }
Parts less_one(const Parts& x) { return {sub(x.re, 1), x.im}; }
Parts and_one(const Parts& x) { return {add(x.re, 1), x.im}; }
Parts one_less(const Parts& x) { return {sub(1, x.re), neg(x.im)}; }

// a b, but 0 where b is 0: a may be infinite there.
Tensor product_or_zero(const Tensor& a, const Tensor& b) { return where(eq(b, 0), b, mul(a, b)); }

Tensor is_infinite(const Tensor& x) { return eq(plugrad::abs(x), kInfinity); }

// size cos(x.im), where size is a function of x.re. As C's Annex G has it, the size at an infinite x.re keeps its value
// beside an angle that is infinite or NaN.
Tensor times_cosine(const Tensor& size, const Parts& x) {
  const Tensor cosine = plugrad::cos(x.im);
  return mul(size, where(logical_and(is_infinite(x.re), ne(cosine, cosine)), 1, cosine));
}

// ln |x|. Near 1 it is log1p of |x|^2 - 1, whose terms are exact or small.
Tensor log_of_length(const Parts& x) {
  const Tensor p = plugrad::abs(x.re), q = plugrad::abs(x.im), larger = maximum(p, q), smaller = minimum(p, q);
  const Tensor far = plugrad::log(hypot(p, q));
  const Tensor near = mul(plugrad::log1p(add(mul(sub(larger, 1), add(larger, 1)), mul(smaller, smaller))), 0.5);
  return where(logical_and(gt(larger, 0.5), lt(larger, 2)), near, far);
}
}  // namespace

Parts parts_of(const Tensor& x) {
  if (is_complex(x.dtype())) return {real(x), imag(x)};
  return {x, zeros_like(x)};
}

Tensor joined(const Parts& parts) {
  const NoGrad unrecorded;
  return complex(parts.re, parts.im);
}

Tensor length(const Parts& x) { return hypot(x.re, x.im); }
Tensor direction(const Parts& x) { return atan2(x.im, x.re); }

// --- Arithmetic.

Parts product(const Parts& a, const Parts& b) {
  return {sub(mul(a.re, b.re), mul(a.im, b.im)), add(mul(a.re, b.im), mul(a.im, b.re))};
}

// R. Smith, "Algorithm 116: Complex division" (1962): no square of the divisor overflows.
Parts quotient(const Parts& a, const Parts& b) {
  const Tensor is_upright = lt(plugrad::abs(b.re), plugrad::abs(b.im));
  const Tensor larger = where(is_upright, b.im, b.re), smaller = where(is_upright, b.re, b.im);
  const Tensor ratio = where(eq(larger, 0), 0, div(smaller, larger)), below = add(larger, mul(smaller, ratio));
  const Tensor along = where(is_upright, a.im, a.re), across = where(is_upright, a.re, a.im);
  const Tensor rest = div(sub(across, mul(along, ratio)), below);
  return {div(add(along, mul(across, ratio)), below), where(is_upright, neg(rest), rest)};
}

Parts power(const Parts& a, const Parts& b) {
  const Parts general = exp(product(b, log(a)));
  const Tensor at_zero = logical_and(eq(a.re, 0), eq(a.im, 0)), to_zero = logical_and(eq(b.re, 0), eq(b.im, 0));
  const Tensor vanishes = logical_and(at_zero, gt(b.re, 0));
  return {where(to_zero, 1, where(vanishes, 0, general.re)), where(to_zero, 0, where(vanishes, 0, general.im))};
}

// Small whole powers are products.
Parts power(const Parts& a, double b) {
  constexpr double kMost = 32;
  if (b == 0.5) return sqrt(a);
  if (b != std::floor(b) || std::abs(b) > kMost) return power(a, Parts{full_like(a.re, b), zeros_like(a.re)});
  Parts result{ones_like(a.re), zeros_like(a.re)}, square = a;
  for (int left = static_cast<int>(std::abs(b)); left; left /= 2) {
    if (left % 2) result = product(result, square);
    if (left > 1) square = product(square, square);
  }
  return b < 0 ? quotient({ones_like(a.re), zeros_like(a.re)}, result) : result;
}

Parts sign(const Parts& x) {
  const Tensor size = length(x), by = where(eq(size, 0), 1, size);
  return {div(x.re, by), div(x.im, by)};
}

// --- Roots, exponentials and logarithms.

Parts sqrt(const Parts& x) {
  const Tensor size = plugrad::abs(x.re), half = mul(x.im, 0.5);
  // Halves of both, so that the sum of large numbers does not overflow.
  const Tensor root = plugrad::sqrt(add(mul(size, 0.5), hypot(mul(x.re, 0.5), half)));
  const Tensor other = where(eq(root, 0), x.im, div(half, root));
  const Tensor is_left = lt(x.re, 0);
  return {where(is_left, plugrad::abs(other), root), where(is_left, copysign(root, x.im), other)};
}

Parts exp(const Parts& x) {
  const Tensor size = plugrad::exp(x.re);
  return {times_cosine(size, x), where(eq(x.re, -kInfinity), 0, product_or_zero(size, plugrad::sin(x.im)))};
}

// e^a cos b - 1 = (e^a - 1) cos b - 2 sin^2(b / 2).
Parts expm1(const Parts& x) {
  const Parts whole = exp(x);
  const Tensor sine = plugrad::sin(mul(x.im, 0.5));
  const Tensor re = sub(mul(plugrad::expm1(x.re), plugrad::cos(x.im)), mul(mul(sine, sine), 2));
  return {where(is_infinite(x.re), sub(whole.re, 1), re), whole.im};
}

Parts log(const Parts& x) { return {log_of_length(x), direction(x)}; }

// |1 + x|^2 - 1 = a (2 + a) + b^2.
Parts log1p(const Parts& x) {
  const Tensor near = mul(plugrad::log1p(add(mul(x.re, add(x.re, 2)), mul(x.im, x.im))), 0.5);
  const Tensor is_small = lt(add(plugrad::abs(x.re), plugrad::abs(x.im)), 0.5);
  const Parts shifted = and_one(x);
  return {where(is_small, near, log_of_length(shifted)), direction(shifted)};
}

// --- Functions of angles.

Parts sin(const Parts& x) {
  return {mul(plugrad::sin(x.re), plugrad::cosh(x.im)), product_or_zero(plugrad::cos(x.re), plugrad::sinh(x.im))};
}
Parts cos(const Parts& x) {
  return {mul(plugrad::cos(x.re), plugrad::cosh(x.im)), neg(mul(plugrad::sin(x.re), plugrad::sinh(x.im)))};
}
Parts tan(const Parts& x) { return turned_back(tanh(turned(x))); }

Parts asin(const Parts& x) {
  const Parts below = sqrt(one_less(x)), above = sqrt(and_one(x));
  const Tensor im = plugrad::asinh(product(conjugate(below), above).im);
  return {atan2(x.re, product(below, above).re), im};
}
Parts acos(const Parts& x) {
  const Parts below = sqrt(one_less(x)), above = sqrt(and_one(x));
  return {mul(atan2(below.re, above.re), 2), plugrad::asinh(product(conjugate(above), below).im)};
}
Parts atan(const Parts& x) { return turned_back(atanh(turned(x))); }

// --- Hyperbolic functions.

Parts sinh(const Parts& x) {
  const Tensor size = plugrad::sinh(x.re);
  return {where(eq(x.re, 0), x.re, times_cosine(size, x)), product_or_zero(plugrad::cosh(x.re), plugrad::sin(x.im))};
}
Parts cosh(const Parts& x) {
  const Tensor im = product_or_zero(plugrad::sinh(x.re), plugrad::sin(x.im));
  return {times_cosine(plugrad::cosh(x.re), x), where(eq(x.re, 0), x.re, im)};
}
// Far from the imaginary axis 1 + sinh^2 is e^2|a| / 4.
Parts tanh(const Parts& x) {
  constexpr double kFar = 15;
  const Tensor size = plugrad::abs(x.re), a = where(gt(size, kFar), copysign(full_like(x.re, kFar), x.re), x.re);
  const Tensor t = plugrad::tan(x.im), s = plugrad::sinh(a), beta = add(mul(t, t), 1), rho = plugrad::cosh(a);
  const Tensor below = add(mul(beta, mul(s, s)), 1);
  const Tensor slow = mul(mul(plugrad::sin(x.im), plugrad::cos(x.im)), mul(plugrad::exp(mul(size, -2)), 4));
  const Tensor far = where(eq(size, kInfinity), 0, slow), is_far = gt(size, kFar);
  const Tensor re = where(eq(x.re, 0), x.re, div(mul(mul(beta, rho), s), below));
  // An angle of NaN makes both parts NaN.
  return {where(is_far, add(copysign(ones_like(x.re), x.re), sub(far, far)), re),
          where(eq(x.im, 0), x.im, where(is_far, far, div(t, below)))};
}

Parts asinh(const Parts& x) { return turned(asin(turned_back(x))); }
Parts acosh(const Parts& x) {
  const Parts below = sqrt(less_one(x)), above = sqrt(and_one(x));
  return {plugrad::asinh(product(conjugate(below), above).re), mul(atan2(below.im, above.re), 2)};
}
Parts atanh(const Parts& x) {
  const Tensor near = sub(1, x.re), square = mul(x.im, x.im);
  const Tensor re = mul(plugrad::log1p(div(mul(x.re, 4), add(mul(near, near), square))), 0.25);
  const Tensor mirrored = add(x.re, 1);
  const Tensor left = mul(plugrad::log1p(div(mul(x.re, -4), add(mul(mirrored, mirrored), square))), -0.25);
  const Tensor angle = atan2(mul(x.im, 2), sub(mul(near, mirrored), square));
  const Tensor is_far = logical_or(is_infinite(x.re), is_infinite(x.im)), quarter = full_like(x.im, std::numbers::pi / 2);
  const Tensor far = where(ne(x.im, x.im), x.im, copysign(quarter, x.im));
  const Tensor keeps = logical_or(is_far, eq(x.re, 0));
  return {where(keeps, copysign(zeros_like(x.re), x.re), where(lt(x.re, 0), left, re)), where(is_far, far, mul(angle, 0.5))};
}

}  // namespace plugrad::complex_numbers
