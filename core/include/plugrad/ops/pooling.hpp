// Pooling over windows of the last axes of x (n, c, l), (n, c, h, w) or (n, c, d, h, w), or without n. Floating dtypes.
// kernel_size, stride, padding, dilation and output_size are a number per spatial axis, or a number for all axes. An empty
// stride means kernel_size. An axis of l elements gives floor((l + 2 padding - dilation (k - 1) - 1) / stride) + 1 elements;
// with ceil_mode, windows that begin in x or in the padding before x may end beyond the padding, so the quotient is rounded
// up. Throws Error (invalid) if a window does not fit, if padding is above half of kernel_size, and for spatial axes without
// elements.
#pragma once
#include <plugrad/ops/sorting.hpp>
#include <plugrad/tensor/tensor.hpp>

#include <optional>

namespace plugrad {

// Returns the largest element of each window; padding is never chosen. The first of equal elements gets the gradient.
PLUGRAD_API Tensor max_pool1d(const Tensor& x, const Shape& kernel_size, const Shape& stride = {},
                              const Shape& padding = {0}, const Shape& dilation = {1}, bool ceil_mode = false);
PLUGRAD_API Tensor max_pool2d(const Tensor& x, const Shape& kernel_size, const Shape& stride = {},
                              const Shape& padding = {0}, const Shape& dilation = {1}, bool ceil_mode = false);
PLUGRAD_API Tensor max_pool3d(const Tensor& x, const Shape& kernel_size, const Shape& stride = {},
                              const Shape& padding = {0}, const Shape& dilation = {1}, bool ceil_mode = false);
// Returns the result of max_pool1d to max_pool3d, and the position of each element in the flattened spatial axes of x (i64),
// which max_unpool takes. In Python max_pool1d to max_pool3d also do so with return_indices=True.
PLUGRAD_API ValuesIndices max_pool1d_with_indices(const Tensor& x, const Shape& kernel_size, const Shape& stride = {},
                                                  const Shape& padding = {0}, const Shape& dilation = {1},
                                                  bool ceil_mode = false);
PLUGRAD_API ValuesIndices max_pool2d_with_indices(const Tensor& x, const Shape& kernel_size, const Shape& stride = {},
                                                  const Shape& padding = {0}, const Shape& dilation = {1},
                                                  bool ceil_mode = false);
PLUGRAD_API ValuesIndices max_pool3d_with_indices(const Tensor& x, const Shape& kernel_size, const Shape& stride = {},
                                                  const Shape& padding = {0}, const Shape& dilation = {1},
                                                  bool ceil_mode = false);
// Returns zeros with x's elements at indices (i64, in x's shape), positions in the flattened spatial axes of the result. Of
// several elements for the same position the last is kept, and all get its gradient. An axis of l elements has (l - 1)
// stride - 2 padding + k elements in the result, or output_size elements, a number less than a stride away.
PLUGRAD_API Tensor max_unpool1d(const Tensor& x, const Tensor& indices, const Shape& kernel_size, const Shape& stride = {},
                                const Shape& padding = {0}, const Shape& output_size = {});
PLUGRAD_API Tensor max_unpool2d(const Tensor& x, const Tensor& indices, const Shape& kernel_size, const Shape& stride = {},
                                const Shape& padding = {0}, const Shape& output_size = {});
PLUGRAD_API Tensor max_unpool3d(const Tensor& x, const Tensor& indices, const Shape& kernel_size, const Shape& stride = {},
                                const Shape& padding = {0}, const Shape& output_size = {});

// Returns the mean of each window. Padding counts as zeros, or not at all if count_include_pad is false; elements beyond the
// padding, due to ceil_mode, never count.
PLUGRAD_API Tensor avg_pool1d(const Tensor& x, const Shape& kernel_size, const Shape& stride = {},
                              const Shape& padding = {0}, bool ceil_mode = false, bool count_include_pad = true);
// Returns the mean of each window: see avg_pool1d. divisor_override, if given, divides the sums in place of the number of
// elements.
PLUGRAD_API Tensor avg_pool2d(const Tensor& x, const Shape& kernel_size, const Shape& stride = {},
                              const Shape& padding = {0}, bool ceil_mode = false, bool count_include_pad = true,
                              std::optional<int64_t> divisor_override = std::nullopt);
PLUGRAD_API Tensor avg_pool3d(const Tensor& x, const Shape& kernel_size, const Shape& stride = {},
                              const Shape& padding = {0}, bool ceil_mode = false, bool count_include_pad = true,
                              std::optional<int64_t> divisor_override = std::nullopt);
// Returns the sum of the elements' norm_type-th powers in each window, to the power of 1 / norm_type. An incomplete window,
// due to ceil_mode, counts as a whole window with the same mean. The gradient is 0 where the sum is 0.
PLUGRAD_API Tensor lp_pool1d(const Tensor& x, double norm_type, const Shape& kernel_size, const Shape& stride = {},
                             bool ceil_mode = false);
PLUGRAD_API Tensor lp_pool2d(const Tensor& x, double norm_type, const Shape& kernel_size, const Shape& stride = {},
                             bool ceil_mode = false);
PLUGRAD_API Tensor lp_pool3d(const Tensor& x, double norm_type, const Shape& kernel_size, const Shape& stride = {},
                             bool ceil_mode = false);

// Returns the means of output_size windows that cover x: along an axis of l elements, with l' windows, window i begins at
// floor(i l / l') and ends before ceil((i + 1) l / l').
PLUGRAD_API Tensor adaptive_avg_pool1d(const Tensor& x, const Shape& output_size);
PLUGRAD_API Tensor adaptive_avg_pool2d(const Tensor& x, const Shape& output_size);
PLUGRAD_API Tensor adaptive_avg_pool3d(const Tensor& x, const Shape& output_size);
// Returns the largest elements of output_size windows that cover x: see adaptive_avg_pool1d. The first of equal elements
// gets the gradient.
PLUGRAD_API Tensor adaptive_max_pool1d(const Tensor& x, const Shape& output_size);
PLUGRAD_API Tensor adaptive_max_pool2d(const Tensor& x, const Shape& output_size);
PLUGRAD_API Tensor adaptive_max_pool3d(const Tensor& x, const Shape& output_size);
// Returns the result of adaptive_max_pool1d to adaptive_max_pool3d, and the position of each element in the flattened
// spatial axes of x (i64). In Python the functions without the suffix also do so with return_indices=True.
PLUGRAD_API ValuesIndices adaptive_max_pool1d_with_indices(const Tensor& x, const Shape& output_size);
PLUGRAD_API ValuesIndices adaptive_max_pool2d_with_indices(const Tensor& x, const Shape& output_size);
PLUGRAD_API ValuesIndices adaptive_max_pool3d_with_indices(const Tensor& x, const Shape& output_size);

}  // namespace plugrad
