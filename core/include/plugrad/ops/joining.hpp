// Functions that join tensors, and functions that bring tensors of several ranks to the same rank. Negative axes count from
// the end.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <vector>

namespace plugrad {

// Returns a view of x with one axis if x has none.
PLUGRAD_API Tensor atleast_1d(const Tensor& x);
// Returns a view of x with two axes if x has fewer: a number gets the extents (1, 1), and a vector (n) becomes (1, n).
PLUGRAD_API Tensor atleast_2d(const Tensor& x);
// Returns a view of x with three axes if x has fewer: a number gets extents of 1, a vector (n) becomes (1, n, 1), and a
// matrix (n, m) becomes (n, m, 1).
PLUGRAD_API Tensor atleast_3d(const Tensor& x);

// Concatenates along the second axis, or along the first axis if the tensors have rank 1. Numbers count as vectors. For
// differing shapes and dtypes, see cat.
PLUGRAD_API Tensor hstack(const std::vector<Tensor>& tensors);
// Concatenates along the first axis. Numbers and vectors count as rows.
PLUGRAD_API Tensor vstack(const std::vector<Tensor>& tensors);
// Concatenates along the third axis, after atleast_3d of each tensor.
PLUGRAD_API Tensor dstack(const std::vector<Tensor>& tensors);
// Concatenates along the second axis. Numbers and vectors count as columns.
PLUGRAD_API Tensor column_stack(const std::vector<Tensor>& tensors);

// Returns x expanded to a shape by NumPy's rules of broadcasting: see expand.
PLUGRAD_API Tensor broadcast_to(const Tensor& x, const Shape& shape);
// Returns x summed over the axes where this shape has extent 1 or no axis: the reverse of broadcast_to. Sums of bools and
// integers are i64. Throws Error (invalid) with both shapes if the shape does not broadcast to x's shape.
PLUGRAD_API Tensor sum_to_size(const Tensor& x, const Shape& size);
// Returns views of the tensors with their common broadcast shape.
PLUGRAD_API std::vector<Tensor> broadcast_tensors(const std::vector<Tensor>& tensors);

}  // namespace plugrad
