// Indexing by tensors of an integer dtype. A negative or too large index is an Error (index_error); some devices report it
// later.
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// Returns out[.., i, ..] = x[.., index[.., i, ..], ..] along the axis. x and index have equal ranks, and, except along the
// axis, index is not larger than x. The result has index's shape.
PLUGRAD_API Tensor gather(const Tensor& x, int axis, const Tensor& index);
// Returns a copy of x with source added at index along the axis. source has index's shape; see gather for x and index.
PLUGRAD_API Tensor scatter_add(const Tensor& x, int axis, const Tensor& index, const Tensor& source);

}  // namespace plugrad
