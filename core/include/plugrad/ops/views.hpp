// Views: tensors of other shapes over the same storage. Gradients flow through them. Negative axes count from the end.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <vector>

namespace plugrad {

// One extent may be -1. Returns a view if the strides allow it, else a copy. Throws Error (invalid) if the counts differ.
PLUGRAD_API Tensor reshape(const Tensor& x, const Shape& shape);
PLUGRAD_API Tensor permute(const Tensor& x, const Shape& axes);
PLUGRAD_API Tensor transpose(const Tensor& x, int axis0 = -2, int axis1 = -1);
// Elements start, start + step, ... before end along one axis. Negative and too large positions mean what they mean in a
// Python slice. step may be negative. Throws Error (invalid) for step 0.
PLUGRAD_API Tensor slice(const Tensor& x, int axis, int64_t start, int64_t end, int64_t step = 1);
// Element `index` of an axis, without that axis; -1 is the last one. An index out of range is an Error (index_error).
PLUGRAD_API Tensor select(const Tensor& x, int axis, int64_t index);
// Repeats extents of 1 and adds leading axes; -1 keeps an extent. Throws Error (invalid) if x does not expand to shape.
PLUGRAD_API Tensor expand(const Tensor& x, const Shape& shape);
// Removes the given axes, which must have extent 1, or all axes of extent 1 if none is given.
PLUGRAD_API Tensor squeeze(const Tensor& x, const Shape& axes = {});
// Inserts an axis of extent 1 as axis number `axis` of the result.
PLUGRAD_API Tensor unsqueeze(const Tensor& x, int axis);
// Returns x if it is dense, else a dense copy.
PLUGRAD_API Tensor contiguous(const Tensor& x);

// Concatenates tensors along an axis; their other extents must be equal, and their dtypes are promoted. Returns a copy.
PLUGRAD_API Tensor cat(const std::vector<Tensor>& tensors, int axis = 0);
// Stacks tensors of one shape along a new axis. Returns a copy.
PLUGRAD_API Tensor stack(const std::vector<Tensor>& tensors, int axis = 0);

// Returns the shape that a and b broadcast to by NumPy's rules. Throws Error (invalid), which names both.
PLUGRAD_API Shape broadcast_shapes(const Shape& a, const Shape& b);

}  // namespace plugrad
