// The geometry of operators that slide a window over spatial axes: axes 2, 3, ...
#pragma once
#include <core/io/onnx/operator.hpp>

#include <vector>

namespace plugrad::io::onnx {

using Extents = std::vector<int64_t>;

struct Window {
  Extents kernel, strides, dilations, before, after;  // before, after: padding
  size_t axes() const { return kernel.size(); }
};
// Reads the attributes strides, dilations, pads and auto_pad.
Window window_of(const Call& c, const Shape& x, const Extents& kernel);

// Pads the last axes, one pair of numbers for each; negative numbers cut.
Tensor padded(const Tensor& x, const Extents& before, const Extents& after, Number value = 0);

// A convolution with the node's attributes; bias may be undefined.
Tensor convolved(const Call& c, const Tensor& x, const Tensor& weight, const Tensor& bias);
// Of one, two or three spatial axes. Throws Error (unsupported) for more.
Tensor convolution(const Tensor& x, const Tensor& weight, const Tensor& bias, const Window& window, int64_t groups);
Tensor transposed_convolution(const Tensor& x, const Tensor& weight, const Tensor& bias, const Window& window,
                              const Extents& output_padding, int64_t groups);

// Average pooling of x with the node's attributes. Input 0 of the node has the shape of x.
Tensor average_pooled_value(const Call& c, const Tensor& x);

}  // namespace plugrad::io::onnx
