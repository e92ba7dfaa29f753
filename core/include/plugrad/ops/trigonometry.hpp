// Trigonometric and hyperbolic functions and their inverses, elementwise. Angles are in radians. Integers and
// bools give f32.
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// A device without SIN and COS computes them less exactly where |x| is above 1e5 (f64: 1e8).
PLUGRAD_API Tensor sin(const Tensor& x);
PLUGRAD_API Tensor cos(const Tensor& x);
PLUGRAD_API Tensor tan(const Tensor& x);
PLUGRAD_API Tensor asin(const Tensor& x);  // in [-pi / 2, pi / 2]; NaN where |x| > 1
PLUGRAD_API Tensor acos(const Tensor& x);  // in [0, pi]; NaN where |x| > 1
PLUGRAD_API Tensor atan(const Tensor& x);  // in [-pi / 2, pi / 2]
// The angle of the point (x, y), in [-pi, pi]. They broadcast, and a zero counts by its sign.
PLUGRAD_API Tensor atan2(const Tensor& y, const Tensor& x);
PLUGRAD_API Tensor sinh(const Tensor& x);
PLUGRAD_API Tensor cosh(const Tensor& x);
PLUGRAD_API Tensor asinh(const Tensor& x);
PLUGRAD_API Tensor acosh(const Tensor& x);  // NaN where x < 1
PLUGRAD_API Tensor atanh(const Tensor& x);  // infinite at -1 and 1, and NaN beyond them

}  // namespace plugrad
