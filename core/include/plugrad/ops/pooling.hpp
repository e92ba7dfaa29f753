// Pooling over windows of the last axes of x (n, c, l) or (n, c, h, w), or without n. Floating dtypes. Each takes one number
// per spatial axis, or one for all. An empty stride means kernel_size. An axis of l elements gives floor((l + 2 padding -
// dilation (k - 1) - 1) / stride) + 1. Throws Error (invalid) if a window does not fit, or if padding is above half of
// kernel_size.
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// The largest element of each window; padding is never chosen. The first of equal elements gets the gradient.
PLUGRAD_API Tensor max_pool1d(const Tensor& x, const Shape& kernel_size, const Shape& stride = {},
                              const Shape& padding = {0}, const Shape& dilation = {1});
PLUGRAD_API Tensor max_pool2d(const Tensor& x, const Shape& kernel_size, const Shape& stride = {},
                              const Shape& padding = {0}, const Shape& dilation = {1});
// The mean of each window. Padding counts as zeros, or not at all if count_include_pad is false.
PLUGRAD_API Tensor avg_pool1d(const Tensor& x, const Shape& kernel_size, const Shape& stride = {},
                              const Shape& padding = {0}, bool count_include_pad = true);
PLUGRAD_API Tensor avg_pool2d(const Tensor& x, const Shape& kernel_size, const Shape& stride = {},
                              const Shape& padding = {0}, bool count_include_pad = true);
// The means of output_size (h', w') windows, which cover x: window i begins at floor(i h / h') and ends before
// ceil((i + 1) h / h').
PLUGRAD_API Tensor adaptive_avg_pool2d(const Tensor& x, const Shape& output_size);

}  // namespace plugrad
