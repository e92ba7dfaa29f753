// Infinities, NaN and signs, parts and units of numbers, and whether tensors are equal.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <optional>

namespace plugrad {

// x with numbers in place of NaN, infinity and -infinity; by default the largest and the smallest finite number of x's dtype
// replace infinities. The gradient is 0 where x was replaced.
PLUGRAD_API Tensor nan_to_num(const Tensor& x, double nan = 0, std::optional<double> posinf = std::nullopt,
                              std::optional<double> neginf = std::nullopt);
// Whether x is negative or -0. NaN counts as positive.
PLUGRAD_API Tensor signbit(const Tensor& x);
PLUGRAD_API Tensor isposinf(const Tensor& x);  // whether x is infinity
PLUGRAD_API Tensor isneginf(const Tensor& x);  // whether x is -infinity
PLUGRAD_API Tensor isreal(const Tensor& x);    // true: there are no complex numbers

PLUGRAD_API Tensor angle(const Tensor& x);  // pi where x is negative, else 0; f32 for integers; NaN stays

// x itself. Throws Error (invalid) for bools.
PLUGRAD_API Tensor positive(const Tensor& x);
// x - trunc(x), with the sign of x. The gradient is 1. Floating dtypes.
PLUGRAD_API Tensor frac(const Tensor& x);
// An angle in radians, from degrees. Integers and bools give f32.
PLUGRAD_API Tensor deg2rad(const Tensor& x);
// An angle in degrees, from radians. Integers and bools give f32.
PLUGRAD_API Tensor rad2deg(const Tensor& x);
// ln(x / (1 - x)), the reverse of sigmoid, of x limited to [eps, 1 - eps] if eps is given; the gradient is 0 beyond these.
PLUGRAD_API Tensor logit(const Tensor& x, std::optional<double> eps = std::nullopt);

// Whether all elements are close, as isclose defines it. The operands broadcast. Waits for the device.
PLUGRAD_API bool allclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false);
// Whether both have the same shape and equal elements; NaN equals nothing. Waits for the device.
PLUGRAD_API bool equal(const Tensor& a, const Tensor& b);

}  // namespace plugrad
