// Elementwise powers, exponentials and logarithms with special bases, and forms that are accurate near 0. Integers and bools
// give f32.
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

PLUGRAD_API Tensor square(const Tensor& x);      // Returns x^2; integers stay integers and wrap; i64 for bools
PLUGRAD_API Tensor reciprocal(const Tensor& x);  // Returns 1 / x
PLUGRAD_API Tensor rsqrt(const Tensor& x);       // Returns 1 / sqrt(x)
PLUGRAD_API Tensor exp2(const Tensor& x);        // Returns 2^x
PLUGRAD_API Tensor log2(const Tensor& x);        // Returns the logarithm to base 2
PLUGRAD_API Tensor log10(const Tensor& x);       // Returns the logarithm to base 10
// Returns e^x - 1, to a few units in the last place also where x is near 0.
PLUGRAD_API Tensor expm1(const Tensor& x);
// Returns ln(1 + x), to a few units in the last place also where x is near 0.
PLUGRAD_API Tensor log1p(const Tensor& x);

}  // namespace plugrad
