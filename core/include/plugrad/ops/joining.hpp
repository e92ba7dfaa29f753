// Tensors side by side, and tensors of several ranks brought to the same rank. Negative axes count from the end.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <vector>

namespace plugrad {

// x with an axis, if it has none: a view.
PLUGRAD_API Tensor atleast_1d(const Tensor& x);
// x with two axes, if it has fewer: a view. A number gets extents of 1, and a vector (n) becomes (1, n).
PLUGRAD_API Tensor atleast_2d(const Tensor& x);
// A view of x with three axes, if it has fewer: a vector (n) becomes (1, n, 1), a matrix (n, m) becomes (n, m, 1).
PLUGRAD_API Tensor atleast_3d(const Tensor& x);

// Concatenates along the second axis, or along the only axis. Numbers count as vectors. For differing shapes and dtypes, see
// cat.
PLUGRAD_API Tensor hstack(const std::vector<Tensor>& tensors);
// Concatenates along the first axis. Numbers and vectors count as rows.
PLUGRAD_API Tensor vstack(const std::vector<Tensor>& tensors);
// Concatenates along the third axis, of tensors as atleast_3d makes them.
PLUGRAD_API Tensor dstack(const std::vector<Tensor>& tensors);
// Concatenates along the second axis. Numbers and vectors count as columns.
PLUGRAD_API Tensor column_stack(const std::vector<Tensor>& tensors);

// x expanded to a shape by NumPy's rules of broadcasting: see expand.
PLUGRAD_API Tensor broadcast_to(const Tensor& x, const Shape& shape);
// x summed over the axes where this shape has extent 1 or no axis: the reverse of broadcast_to. Sums of bools and integers
// are i64. Throws Error (invalid) with both shapes if the shape does not broadcast to x's.
PLUGRAD_API Tensor sum_to_size(const Tensor& x, const Shape& size);
// Views of the common broadcast shape.
PLUGRAD_API std::vector<Tensor> broadcast_tensors(const std::vector<Tensor>& tensors);

}  // namespace plugrad
