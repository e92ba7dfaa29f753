// Views: tensors of new shapes over the same storage. Gradients flow through views. Negative axes count from the end.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <vector>

namespace plugrad {

// Returns x's elements in a new shape; a single extent may be -1. The result is a view if the strides allow it, else a copy.
// Throws Error (invalid) if the counts differ.
PLUGRAD_API Tensor reshape(const Tensor& x, const Shape& shape);
// Returns a view with the axes in this order.
PLUGRAD_API Tensor permute(const Tensor& x, const Shape& axes);
// Returns a view with two axes swapped.
PLUGRAD_API Tensor transpose(const Tensor& x, int axis0 = -2, int axis1 = -1);
// Returns a view of every step-th element of an axis from start up to end, without end. Negative and too large positions
// have the meaning of a Python slice. step may be negative. Throws Error (invalid) for step 0.
PLUGRAD_API Tensor slice(const Tensor& x, int axis, int64_t start, int64_t end, int64_t step = 1);
// Returns a view of element `index` of an axis, without the axis; -1 is the last element. An index out of range is an Error
// (index_error).
PLUGRAD_API Tensor select(const Tensor& x, int axis, int64_t index);
// Repeats extents of 1 and adds leading axes; -1 keeps an extent. Throws Error (invalid) if x does not expand to shape.
PLUGRAD_API Tensor expand(const Tensor& x, const Shape& shape);
// Removes the given axes if they have extent 1, or all axes of extent 1 if no axes are given.
PLUGRAD_API Tensor squeeze(const Tensor& x, const Shape& axes = {});
// Inserts an axis of extent 1 as axis number `axis` of the result.
PLUGRAD_API Tensor unsqueeze(const Tensor& x, int axis);
// Returns x with the axes from start_axis to end_axis as a single axis; a number becomes a vector. See reshape. Throws Error
// (invalid) if start_axis is behind end_axis.
PLUGRAD_API Tensor flatten(const Tensor& x, int start_axis = 0, int end_axis = -1);
// Returns all elements as a contiguous vector.
PLUGRAD_API Tensor ravel(const Tensor& x);
// Splits an axis into several axes of these extents, the reverse of flatten; a single extent may be -1.
PLUGRAD_API Tensor unflatten(const Tensor& x, int axis, const Shape& sizes);
// Returns x reshaped to the shape of another tensor: see reshape.
PLUGRAD_API Tensor reshape_as(const Tensor& x, const Tensor& other);
// Returns x reshaped to the shape of another tensor: see reshape.
PLUGRAD_API Tensor view_as(const Tensor& x, const Tensor& other);
// Returns x expanded to the shape of another tensor: see expand.
PLUGRAD_API Tensor expand_as(const Tensor& x, const Tensor& other);
// Returns a view of x's elements that begins at element storage_offset, with these extents and strides, which count
// elements. Several elements of the view may be the same element of x; their gradients add up. Throws Error (invalid) unless
// x is contiguous, the strides are not negative, and all elements are x's elements.
PLUGRAD_API Tensor as_strided(const Tensor& x, const Shape& size, const Shape& stride, int64_t storage_offset = 0);
// Returns x if it is dense, else a dense copy.
PLUGRAD_API Tensor contiguous(const Tensor& x);

// Concatenates tensors along an axis; their remaining extents must be equal, and their dtypes are promoted. Returns a copy.
PLUGRAD_API Tensor cat(const std::vector<Tensor>& tensors, int axis = 0);
// Stacks tensors of the same shape along a new axis. Returns a copy.
PLUGRAD_API Tensor stack(const std::vector<Tensor>& tensors, int axis = 0);

// Returns the broadcast shape of a and b by NumPy's rules. Throws Error (invalid) with both shapes.
PLUGRAD_API Shape broadcast_shapes(const Shape& a, const Shape& b);

}  // namespace plugrad
