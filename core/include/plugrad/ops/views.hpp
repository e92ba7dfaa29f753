// Views: other shapes of the same storage. Gradients flow through every one of them. Negative axes count from the end.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <vector>

namespace plugrad {

// One extent may be -1. A view where the strides allow it, else a copy. Throws Error (invalid) where the counts differ.
PLUGRAD_API Tensor reshape(const Tensor& x, const Shape& shape);
PLUGRAD_API Tensor permute(const Tensor& x, const Shape& axes);
PLUGRAD_API Tensor transpose(const Tensor& x, int axis0 = -2, int axis1 = -1);
// Elements start, start + step, ... before end of one axis, as Python slices: negative and too large positions are
// understood as there, step may be negative but not 0.
PLUGRAD_API Tensor slice(const Tensor& x, int axis, int64_t start, int64_t end, int64_t step = 1);
// Element `index` of an axis (negative from the end), without that axis.
PLUGRAD_API Tensor select(const Tensor& x, int axis, int64_t index);
// Repeats extents of 1, and adds axes in front; -1 keeps an extent. Throws Error (invalid) where it does not fit.
PLUGRAD_API Tensor expand(const Tensor& x, const Shape& shape);
// Without the given axes of extent 1, or without all of them where none is given.
PLUGRAD_API Tensor squeeze(const Tensor& x, const Shape& axes = {});
// With a new axis of extent 1, which is number `axis` of the result.
PLUGRAD_API Tensor unsqueeze(const Tensor& x, int axis);
// x where it is dense, else a dense copy.
PLUGRAD_API Tensor contiguous(const Tensor& x);

// Tensors one after another along an axis; their other extents are equal. A copy.
PLUGRAD_API Tensor cat(const std::vector<Tensor>& tensors, int axis = 0);
// Tensors of one shape along a new axis. A copy.
PLUGRAD_API Tensor stack(const std::vector<Tensor>& tensors, int axis = 0);

// The shape that two broadcast to, as NumPy defines it. Throws Error (invalid) naming both.
PLUGRAD_API Shape broadcast_shapes(const Shape& a, const Shape& b);

}  // namespace plugrad
