// Tensors chosen by position or by a mask.
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// Returns x with value where mask (bool) is true, in x's dtype. x and mask broadcast. The gradient of x is 0 where value
// replaced x. A tensor as value gets the gradient of the replaced elements. Throws Error (invalid) for a tensor of another
// rank than 0.
PLUGRAD_API Tensor masked_fill(const Tensor& x, const Tensor& mask, Number value);
PLUGRAD_API Tensor masked_fill(const Tensor& x, const Tensor& mask, const Tensor& value);
// Returns the elements of the last two axes on and below the diagonal, and 0 above the diagonal. `diagonal` moves the
// diagonal: 1 moves it up by 1. Throws Error (invalid) if x has fewer than two axes.
PLUGRAD_API Tensor tril(const Tensor& x, int64_t diagonal = 0);
// Returns the elements of the last two axes on and above the diagonal, and 0 below the diagonal: see tril.
PLUGRAD_API Tensor triu(const Tensor& x, int64_t diagonal = 0);
// Returns a matrix (n, m) with 1 on the diagonal and 0 elsewhere. m = -1 means m = n.
PLUGRAD_API Tensor eye(int64_t n, int64_t m = -1, DType dtype = DType::f32, Device device = default_device());
// Adds a last axis of num_classes elements (i64): 1 at the class in indices (i64), else 0. An index out of range is an Error
// (index_error); some devices report it later.
PLUGRAD_API Tensor one_hot(const Tensor& indices, int64_t num_classes);

}  // namespace plugrad
