// Functions of infinities, NaN and signs, parts and units of numbers, and functions that compare tensors.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <optional>

namespace plugrad {

// Returns x with numbers in place of NaN, infinity and -infinity; by default the largest and the smallest finite number of
// x's dtype replace infinities. The gradient is 0 where x was replaced.
PLUGRAD_API Tensor nan_to_num(const Tensor& x, double nan = 0, std::optional<double> posinf = std::nullopt,
                              std::optional<double> neginf = std::nullopt);
// Returns whether x is negative or -0. NaN counts as positive.
PLUGRAD_API Tensor signbit(const Tensor& x);
PLUGRAD_API Tensor isposinf(const Tensor& x);  // Returns whether x is infinity
PLUGRAD_API Tensor isneginf(const Tensor& x);  // Returns whether x is -infinity
PLUGRAD_API Tensor isreal(const Tensor& x);    // Returns whether the imaginary part is 0; true for real tensors

// Returns the angle of complex numbers, in [-pi, pi]; of real numbers pi where x is negative, else 0, and f32 for integers.
// NaN stays NaN. The gradient at 0 is 0.
PLUGRAD_API Tensor angle(const Tensor& x);

// Returns x itself. Throws Error (invalid) for bools.
PLUGRAD_API Tensor positive(const Tensor& x);
// Returns x - trunc(x), with the sign of x. The gradient is 1. Floating dtypes.
PLUGRAD_API Tensor frac(const Tensor& x);
// Returns an angle in radians for an angle in degrees. Integers and bools give f32.
PLUGRAD_API Tensor deg2rad(const Tensor& x);
// Returns an angle in degrees for an angle in radians. Integers and bools give f32.
PLUGRAD_API Tensor rad2deg(const Tensor& x);
// Returns ln(x / (1 - x)), the inverse of sigmoid. If eps is given, x is first limited to [eps, 1 - eps], and the gradient
// is 0 beyond these bounds.
PLUGRAD_API Tensor logit(const Tensor& x, std::optional<double> eps = std::nullopt);

// Returns whether all elements are close, as isclose defines it. The operands broadcast. Waits for the device.
PLUGRAD_API bool allclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false);
// Returns whether a and b have the same shape and equal elements; NaN equals nothing. Waits for the device.
PLUGRAD_API bool equal(const Tensor& a, const Tensor& b);

}  // namespace plugrad
