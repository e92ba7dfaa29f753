// Indexing by tensors of i64. Indices run from 0; others are an Error (index_error), on some devices reported later.
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// out[.., i, ..] = x[.., index[.., i, ..], ..] along the axis: the ranks are equal, and each other extent of index is at
// most x's. The result has index's shape.
PLUGRAD_API Tensor gather(const Tensor& x, int axis, const Tensor& index);
// A copy of x with source added at index along the axis: index and source have one shape; each other extent is at most x's.
PLUGRAD_API Tensor scatter_add(const Tensor& x, int axis, const Tensor& index, const Tensor& source);

}  // namespace plugrad
