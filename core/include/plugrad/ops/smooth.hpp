// Smooth activation functions. They take floating dtypes, keep the dtype, and throw Error (invalid) for other dtypes.
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// Returns x tanh(ln(1 + e^x)).
PLUGRAD_API Tensor mish(const Tensor& x);
// Returns s x where x is positive, else s a (e^x - 1), with s = 1.0507 and a = 1.6733. The gradient at 0 is s a.
PLUGRAD_API Tensor selu(const Tensor& x);
// Returns x where x is positive, else alpha (e^(x / alpha) - 1), accurate near 0.
PLUGRAD_API Tensor celu(const Tensor& x, double alpha = 1);
// Returns x / (1 + |x|).
PLUGRAD_API Tensor softsign(const Tensor& x);
// Returns x - tanh(x).
PLUGRAD_API Tensor tanhshrink(const Tensor& x);
// Returns ln(sigmoid(x)), without overflow.
PLUGRAD_API Tensor logsigmoid(const Tensor& x);
// Returns softmax(-x) along an axis.
PLUGRAD_API Tensor softmin(const Tensor& x, int axis);
// Returns the first half of x along an axis times the sigmoid of the second half. Throws Error (invalid) for an odd extent.
PLUGRAD_API Tensor glu(const Tensor& x, int axis = -1);
// Returns softmax((x + g) / tau) along an axis for noise g of the standard Gumbel distribution, drawn from the device's
// generator. hard: returns 1 for the largest element and 0 for the remaining elements, with the gradient of the softmax.
PLUGRAD_API Tensor gumbel_softmax(const Tensor& x, double tau = 1, bool hard = false, int axis = -1);

}  // namespace plugrad
