// The ops of convolution, recorded: the convolution, its input gradient and its weight gradient. The gradients of each op
// are the remaining two ops. They run by the device's kernel, or are composed of windows and products.
#pragma once
#include <core/ops/window.hpp>
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// The shapes have a number for each spatial axis.
struct ConvolutionSettings {
  Shape stride, padding, dilation;
  int64_t groups;

  // The windows along a spatial axis of a padded tensor.
  Windows windows(const Shape& weight, int axis) const {
    const size_t at = static_cast<size_t>(axis);
    return {axis + 2, weight[at + 2], stride[at], dilation[at]};
  }
  // The same windows in images of this shape, with unused numbers made small: see Windows::used.
  ConvolutionSettings used(const Shape& weight, const Shape& images) const {
    ConvolutionSettings all = *this;
    for (int i = 0; i < stride.rank(); ++i) {
      const size_t at = static_cast<size_t>(i);
      const Windows along = windows(weight, i).used(2 * Extent(padding[at]) + images[at + 2]);
      all.stride[at] = along.step;
      all.dilation[at] = along.dilation;
    }
    return all;
  }
};

// x (n, c, ..), weight (o, c / groups, ..), bias (o) or undefined -> `shape` (n, o, ..). The caller checks that they fit.
Tensor convolve(const Tensor& x, const Tensor& weight, const Tensor& bias, const Shape& shape,
                const ConvolutionSettings& how);
// The same by the device's kernel, without a bias. Undefined without such a kernel. x and weight share a dtype and a device.
Tensor native_convolve(const Tensor& x, const Tensor& weight, const Shape& shape, const ConvolutionSettings& how);
// The gradient of x, in x's shape `shape`, from grad (n, o, ..). It is also the transposed convolution of grad.
Tensor convolution_input_gradient(const Tensor& grad, const Tensor& weight, const Shape& shape,
                                  const ConvolutionSettings& how);
// The gradient of the weight, in the weight's shape `shape`.
Tensor convolution_weight_gradient(const Tensor& grad, const Tensor& x, const Shape& shape, const ConvolutionSettings& how);
// out (n, o, ..) plus bias (o); bias may be undefined.
Tensor with_bias(const Tensor& out, const Tensor& bias);

}  // namespace plugrad
