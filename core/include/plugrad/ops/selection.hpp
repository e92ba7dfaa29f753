// Functions that choose elements by tensors of an integer dtype. As in PyTorch, negative indices count from the end in take,
// put, take_along_dim, put_along_axis and index_fill, and are out of range in the remaining functions. An index out of range
// is an Error (index_error); some devices report it later. Where several writes name the same element, the last write is
// kept, and only the last write has a gradient.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <optional>

namespace plugrad {

// Returns the elements at these positions of the flattened tensor, in index's shape. With an axis, returns the elements of
// the axis at these positions, and the axes of index replace the axis.
PLUGRAD_API Tensor take(const Tensor& x, const Tensor& index, std::optional<int64_t> axis = std::nullopt);
// Returns out[.., i, ..] = x[.., indices[.., i, ..], ..] along the axis. The ranks are equal, and the remaining axes
// broadcast. Without an axis, x and indices are flattened first. Throws Error (invalid) if the ranks differ.
PLUGRAD_API Tensor take_along_dim(const Tensor& x, const Tensor& indices, std::optional<int64_t> axis = std::nullopt);
// Returns the same as take_along_dim, by default along the last axis.
PLUGRAD_API Tensor take_along_axis(const Tensor& x, const Tensor& indices, int axis = -1);
// Returns a copy of x with source's elements at these positions of the flattened tensor; accumulate adds source's elements
// to x's elements. index and source have as many elements, and source has x's dtype.
PLUGRAD_API Tensor put(const Tensor& x, const Tensor& index, const Tensor& source, bool accumulate = false);
// Returns a copy of x with values at indices along the axis. indices and values broadcast to x's remaining extents, and
// values is converted to x's dtype.
PLUGRAD_API Tensor put_along_axis(const Tensor& x, const Tensor& indices, const Tensor& values, int axis);
// Returns the elements of an axis at index (rank 1 or 0), in index's order.
PLUGRAD_API Tensor index_select(const Tensor& x, int axis, const Tensor& index);
// Returns a copy of x with alpha * source added at index (rank 1 or 0) along the axis. source has x's shape, but with
// index's extent along the axis, and x's dtype.
PLUGRAD_API Tensor index_add(const Tensor& x, int axis, const Tensor& index, const Tensor& source, Number alpha = 1);
// Returns a copy of x with source in place of x's elements at index along the axis: see index_add.
PLUGRAD_API Tensor index_copy(const Tensor& x, int axis, const Tensor& index, const Tensor& source);
// Returns a copy of x with value at index (rank 1 or 0) along the axis. A tensor as value has rank 0 and is converted to x's
// dtype.
PLUGRAD_API Tensor index_fill(const Tensor& x, int axis, const Tensor& index, Number value);
PLUGRAD_API Tensor index_fill(const Tensor& x, int axis, const Tensor& index, const Tensor& value);

}  // namespace plugrad
