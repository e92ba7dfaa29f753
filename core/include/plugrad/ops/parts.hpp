// Parts of tensors as views, and copies of tensors with a replaced part. The gradient of a part goes to the position of the
// part in x. src has the part's shape and x's dtype and device; if the shapes differ, Error (invalid) names both shapes.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <optional>
#include <vector>

namespace plugrad {

// Returns a view of `length` elements of an axis, beginning at start; a negative start counts from the end. Throws Error
// (index_error) for a start out of range, and Error (invalid) if there are fewer elements.
PLUGRAD_API Tensor narrow(const Tensor& x, int axis, int64_t start, int64_t length);
// Returns a view of each element of an axis, without the axis.
PLUGRAD_API std::vector<Tensor> unbind(const Tensor& x, int axis = 0);
// Returns a view of the diagonal of two axes, which a last axis for the diagonal replaces. offset moves the diagonal: up by
// 1 for 1, down by 1 for -1. The view is empty if offset moves the diagonal outside the matrix. Throws Error (invalid) if
// both axes are the same.
PLUGRAD_API Tensor diagonal(const Tensor& x, int64_t offset = 0, int axis1 = 0, int axis2 = 1);
// Returns a copy of a matrix's diagonal, or for a tensor of rank 1 the square matrix with x on a diagonal and 0 elsewhere.
// Throws Error (invalid) for rank 0 and for ranks above 2.
PLUGRAD_API Tensor diag(const Tensor& x, int64_t diagonal = 0);
// Returns the square matrix with all elements of x, row-major, on a diagonal and 0 elsewhere.
PLUGRAD_API Tensor diagflat(const Tensor& x, int64_t offset = 0);
// Returns zeros with the last axis of x on the diagonal of two axes of the result. These two axes replace the last axis.
PLUGRAD_API Tensor diag_embed(const Tensor& x, int64_t offset = 0, int axis1 = -2, int axis2 = -1);
// Returns x with src as its diagonal; see diagonal for the remaining parameters.
PLUGRAD_API Tensor diagonal_scatter(const Tensor& x, const Tensor& src, int64_t offset = 0, int axis1 = 0, int axis2 = 1);
// Returns x with src as the element `index` of an axis; see select.
PLUGRAD_API Tensor select_scatter(const Tensor& x, const Tensor& src, int axis, int64_t index);
// Returns x with src as the elements start, start + step, ... before end of an axis; see slice.
PLUGRAD_API Tensor slice_scatter(const Tensor& x, const Tensor& src, int axis = 0,
                                 std::optional<int64_t> start = std::nullopt, std::optional<int64_t> end = std::nullopt,
                                 int64_t step = 1);

}  // namespace plugrad
