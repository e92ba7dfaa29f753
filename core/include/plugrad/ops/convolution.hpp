// Convolutions as networks define them, cross-correlations: the weight is not reversed. Floating dtypes. Each takes a number
// per spatial axis, or a number for all. An undefined bias is left out. Throws Error (invalid) with the shapes if they do
// not fit. A device without ops for convolutions copies the windows of x; the copy has x's size times the window's.
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// x (n, c, l), or (c, l), with weight (o, c / groups, k) and bias (o): (n, o, l'), where l' = floor((l + 2 padding -
// dilation (k - 1) - 1) / stride) + 1. Group g of o / groups results uses group g of the channels.
PLUGRAD_API Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Shape& stride = {1},
                          const Shape& padding = {0}, const Shape& dilation = {1}, int64_t groups = 1);
// The same for x (n, c, h, w), or (c, h, w), and weight (o, c / groups, kh, kw).
PLUGRAD_API Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Shape& stride = {1},
                          const Shape& padding = {0}, const Shape& dilation = {1}, int64_t groups = 1);
// The same for x (n, c, d, h, w), or (c, d, h, w), and weight (o, c / groups, kd, kh, kw).
PLUGRAD_API Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Shape& stride = {1},
                          const Shape& padding = {0}, const Shape& dilation = {1}, int64_t groups = 1);

enum class ConvolutionPadding { valid, same };
// The same with a name for the padding: none, or as much as keeps x's extents. To keep the extents the stride must be 1. Of
// an odd number, the additional element is behind x.
PLUGRAD_API Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Shape& stride,
                          ConvolutionPadding padding, const Shape& dilation = {1}, int64_t groups = 1);
PLUGRAD_API Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Shape& stride,
                          ConvolutionPadding padding, const Shape& dilation = {1}, int64_t groups = 1);
PLUGRAD_API Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Shape& stride,
                          ConvolutionPadding padding, const Shape& dilation = {1}, int64_t groups = 1);

// The gradient of conv1d with respect to its x, as a function: x (n, c, l), or (c, l), with weight (c, o / groups, k) and
// bias (o): (n, o, l'), where l' = (l - 1) stride - 2 padding + dilation (k - 1) + output_padding + 1. output_padding is
// below stride or dilation.
PLUGRAD_API Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                    const Shape& stride = {1}, const Shape& padding = {0}, const Shape& output_padding = {0},
                                    int64_t groups = 1, const Shape& dilation = {1});
// The same of conv2d, for x (n, c, h, w), or (c, h, w), and weight (c, o / groups, kh, kw).
PLUGRAD_API Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                    const Shape& stride = {1}, const Shape& padding = {0}, const Shape& output_padding = {0},
                                    int64_t groups = 1, const Shape& dilation = {1});
// The same of conv3d, for x (n, c, d, h, w), or (c, d, h, w), and weight (c, o / groups, kd, kh, kw).
PLUGRAD_API Tensor conv_transpose3d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                    const Shape& stride = {1}, const Shape& padding = {0}, const Shape& output_padding = {0},
                                    int64_t groups = 1, const Shape& dilation = {1});

}  // namespace plugrad
