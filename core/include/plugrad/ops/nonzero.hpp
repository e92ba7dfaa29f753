// Functions that choose the true elements of a tensor. A number counts as true if it is not 0; NaN is true. All functions
// but masked_scatter wait for the device, because the number of true elements determines the shape of the result.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <vector>

namespace plugrad {

// Returns the positions (i64) of the true elements in row-major order: a row for each element, with its position along each
// axis of x.
PLUGRAD_API Tensor nonzero(const Tensor& x);
// Returns the same as nonzero.
PLUGRAD_API Tensor argwhere(const Tensor& x);
// Returns the first `size` rows of nonzero, filled up with rows of fill_value. Throws Error (invalid) for a negative size.
PLUGRAD_API Tensor nonzero_static(const Tensor& x, int64_t size, int64_t fill_value = -1);
// Returns the positions of the true elements as a key for index: a tensor (i64) of rank 1 for each axis. Rank 0 counts as
// rank 1.
PLUGRAD_API std::vector<Tensor> where(const Tensor& condition);
// Returns the elements of x where mask (bool) is true, row-major, as a tensor of rank 1. x and mask broadcast.
PLUGRAD_API Tensor masked_select(const Tensor& x, const Tensor& mask);
// Returns x with the elements of source, row-major, in place of x's elements where mask (bool) is true. x and mask
// broadcast; source has x's dtype. Throws Error (index_error) if source has too few elements; some devices report it later.
// The gradient of source is 0 for elements beyond the number of true elements.
PLUGRAD_API Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& source);

}  // namespace plugrad
