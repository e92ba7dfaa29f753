// Activation functions with kinks, element by element. They take floating dtypes, keep shape and dtype, and throw Error
// (invalid) for other dtypes. Comments state the gradients at kinks.
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// Returns x limited to [0, 6]. The gradient is 0 at the bounds and beyond them.
PLUGRAD_API Tensor relu6(const Tensor& x);
// Returns x / 6 + 1 / 2, limited to [0, 1]. The gradient is 0 at the bounds and beyond them.
PLUGRAD_API Tensor hardsigmoid(const Tensor& x);
// Returns x hardsigmoid(x). The gradient is 0 where x <= -3 and 1 where x >= 3.
PLUGRAD_API Tensor hardswish(const Tensor& x);
// Returns x where x is above threshold, else value. The gradient is 0 at the threshold.
PLUGRAD_API Tensor threshold(const Tensor& x, double threshold, double value);
// Returns x moved towards 0 by lambd, and 0 where |x| is at most lambd. The gradient is 0 where the result is 0.
PLUGRAD_API Tensor softshrink(const Tensor& x, double lambd = 0.5);
// Returns x, but 0 where |x| is at most lambd. The gradient is 0 where the result is 0.
PLUGRAD_API Tensor hardshrink(const Tensor& x, double lambd = 0.5);
// Returns x where x is positive, else weight x. weight has 1 element, or an element for each channel (axis 1 of x). The
// derivative with respect to x is weight at 0.
PLUGRAD_API Tensor prelu(const Tensor& x, const Tensor& weight);
// Returns x where x is positive, else slope x. slope is (lower + upper) / 2; with training, each element draws its own
// slope, uniform between lower and upper, from the device's generator. The gradient at 0 is the slope.
PLUGRAD_API Tensor rrelu(const Tensor& x, double lower = 0.125, double upper = 0.333333333333333333, bool training = false);

}  // namespace plugrad
