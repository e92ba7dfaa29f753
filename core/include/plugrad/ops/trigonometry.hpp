// Elementwise trigonometric and hyperbolic functions and their inverses. Angles are in radians. Integers and bools give f32.
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// A device without SIN is less accurate where |x| is above 1e5 (f64: 1e8).
PLUGRAD_API Tensor sin(const Tensor& x);
// A device without COS is less accurate where |x| is above 1e5 (f64: 1e8).
PLUGRAD_API Tensor cos(const Tensor& x);
// Returns sin(x) / cos(x). A device without SIN and COS is less accurate where |x| is above 1e5 (f64: 1e8).
PLUGRAD_API Tensor tan(const Tensor& x);
PLUGRAD_API Tensor asin(const Tensor& x);  // Returns the inverse of sin, in [-pi / 2, pi / 2]; NaN where |x| > 1
PLUGRAD_API Tensor acos(const Tensor& x);  // Returns the inverse of cos, in [0, pi]; NaN where |x| > 1
PLUGRAD_API Tensor atan(const Tensor& x);  // Returns the inverse of tan, in [-pi / 2, pi / 2]
// Returns the angle of the point (x, y), in [-pi, pi]. y and x broadcast, and the sign of a zero counts.
PLUGRAD_API Tensor atan2(const Tensor& y, const Tensor& x);
PLUGRAD_API Tensor sinh(const Tensor& x);   // Returns the hyperbolic sine
PLUGRAD_API Tensor cosh(const Tensor& x);   // Returns the hyperbolic cosine
PLUGRAD_API Tensor asinh(const Tensor& x);  // Returns the inverse of sinh
PLUGRAD_API Tensor acosh(const Tensor& x);  // Returns the inverse of cosh; NaN where x < 1
PLUGRAD_API Tensor atanh(const Tensor& x);  // Returns the inverse of tanh; infinite at -1 and 1, NaN beyond them

}  // namespace plugrad
