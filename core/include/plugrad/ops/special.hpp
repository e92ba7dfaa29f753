// Elementwise special functions. Integers and bools give f32; halves are computed in f32 and rounded once. Comments state
// the results at poles and the gradients at kinks.
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// --- The error function and the normal distribution.

PLUGRAD_API Tensor erfc(const Tensor& x);    // Returns 1 - erf(x), accurate also where the result is small
PLUGRAD_API Tensor erfcx(const Tensor& x);   // Returns e^(x^2) erfc(x)
PLUGRAD_API Tensor erfinv(const Tensor& x);  // Returns the inverse of erf: infinite at -1 and 1, NaN beyond them
// Returns the standard normal distribution function of x.
PLUGRAD_API Tensor ndtr(const Tensor& x);
// Returns the logarithm of the standard normal distribution function of x, accurate also where the function is small.
PLUGRAD_API Tensor log_ndtr(const Tensor& x);
// Returns the inverse of the standard normal distribution function at x; infinite at 0 and 1, NaN beyond them.
PLUGRAD_API Tensor ndtri(const Tensor& x);

// --- The gamma function.

// Returns ln |gamma(x)|; infinite at 0, -1, -2, ...
PLUGRAD_API Tensor lgamma(const Tensor& x);
// Returns the derivative of ln(gamma(x)): -infinity at 0, infinity at -0, NaN at -1, -2, ...
PLUGRAD_API Tensor digamma(const Tensor& x);
// Returns the n-th derivative of digamma at x. Throws Error (invalid) for a negative n.
PLUGRAD_API Tensor polygamma(int64_t n, const Tensor& x);
// Returns the logarithm of the multivariate gamma function of dimension p: p (p - 1) / 4 ln(pi) plus the sum of lgamma(x - i
// / 2) for i = 0 .. p - 1. Throws Error (invalid) for a p below 1.
PLUGRAD_API Tensor mvlgamma(const Tensor& x, int64_t p);

// --- Modified Bessel functions of the first kind, of orders 0 and 1; i0e and i1e are multiplied by e^-|x|.

// Returns the modified Bessel function of the first kind of order 0 at x.
PLUGRAD_API Tensor i0(const Tensor& x);
// Returns e^-|x| i0(x), without overflow.
PLUGRAD_API Tensor i0e(const Tensor& x);
// Returns the modified Bessel function of the first kind of order 1 at x.
PLUGRAD_API Tensor i1(const Tensor& x);
// Returns e^-|x| i1(x), without overflow.
PLUGRAD_API Tensor i1e(const Tensor& x);

// --- Elementary functions with a limit.

PLUGRAD_API Tensor sinc(const Tensor& x);  // Returns sin(pi x) / (pi x); 1 at 0, with gradient 0
// Returns -x ln(x); 0 at 0, -infinity where x is negative. The gradient at 0 is infinite.
PLUGRAD_API Tensor entr(const Tensor& x);
// Returns a ln(1 + b); 0 where a is 0 and b is not NaN. a and b broadcast, and their dtypes are promoted as in add.
PLUGRAD_API Tensor xlog1py(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor xlog1py(const Tensor& a, Number b);
PLUGRAD_API Tensor xlog1py(Number a, const Tensor& b);

}  // namespace plugrad
