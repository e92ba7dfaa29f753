// Convolutions of networks: cross-correlations, in which the weight is not reversed. Floating dtypes. stride, padding,
// dilation and output_padding are a number per spatial axis, or a number for all axes. An undefined bias is left out. Throws
// Error (invalid) with the shapes if they do not fit. A device without ops for convolutions copies the windows of x; the
// copy has x's size times the window's size.
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// Convolves x (n, c, l), or (c, l), with weight (o, c / groups, k) and adds bias (o): (n, o, l'), where l' = floor((l + 2
// padding - dilation (k - 1) - 1) / stride) + 1. Group g of o / groups results uses group g of the channels.
PLUGRAD_API Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Shape& stride = {1},
                          const Shape& padding = {0}, const Shape& dilation = {1}, int64_t groups = 1);
// Convolves x (n, c, h, w), or (c, h, w), with weight (o, c / groups, kh, kw): see conv1d.
PLUGRAD_API Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Shape& stride = {1},
                          const Shape& padding = {0}, const Shape& dilation = {1}, int64_t groups = 1);
// Convolves x (n, c, d, h, w), or (c, d, h, w), with weight (o, c / groups, kd, kh, kw): see conv1d.
PLUGRAD_API Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Shape& stride = {1},
                          const Shape& padding = {0}, const Shape& dilation = {1}, int64_t groups = 1);

enum class ConvolutionPadding { valid, same };
// Convolves with a named padding: valid means no padding, and same means as much padding as keeps x's extents. same requires
// a stride of 1. If the padding of an axis is an odd number, the additional element is behind x.
PLUGRAD_API Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Shape& stride,
                          ConvolutionPadding padding, const Shape& dilation = {1}, int64_t groups = 1);
PLUGRAD_API Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Shape& stride,
                          ConvolutionPadding padding, const Shape& dilation = {1}, int64_t groups = 1);
PLUGRAD_API Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Shape& stride,
                          ConvolutionPadding padding, const Shape& dilation = {1}, int64_t groups = 1);

// Returns the gradient of conv1d with respect to x, as a function: x (n, c, l), or (c, l), with weight (c, o / groups, k)
// and bias (o) give (n, o, l'), where l' = (l - 1) stride - 2 padding + dilation (k - 1) + output_padding + 1.
// output_padding is below stride or dilation.
PLUGRAD_API Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                    const Shape& stride = {1}, const Shape& padding = {0}, const Shape& output_padding = {0},
                                    int64_t groups = 1, const Shape& dilation = {1});
// Returns the gradient of conv2d with respect to x, for x (n, c, h, w), or (c, h, w), and weight (c, o / groups, kh, kw):
// see conv_transpose1d.
PLUGRAD_API Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                    const Shape& stride = {1}, const Shape& padding = {0}, const Shape& output_padding = {0},
                                    int64_t groups = 1, const Shape& dilation = {1});
// Returns the gradient of conv3d with respect to x, for x (n, c, d, h, w), or (c, d, h, w), and weight (c, o / groups, kd,
// kh, kw): see conv_transpose1d.
PLUGRAD_API Tensor conv_transpose3d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                    const Shape& stride = {1}, const Shape& padding = {0}, const Shape& output_padding = {0},
                                    int64_t groups = 1, const Shape& dilation = {1});

}  // namespace plugrad
