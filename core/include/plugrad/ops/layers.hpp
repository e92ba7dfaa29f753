// The functions behind layers of networks. An undefined weight or bias is left out.
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// x (.., k) times the transpose of weight (n, k), plus bias (n): (.., n). A weight of shape (k) gives (..). Floating dtypes.
// Throws Error (invalid), which names both shapes.
PLUGRAD_API Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});
// The rows of weight (v, d) that indices (i64, any shape) name: indices' shape and an axis of d. An index that is negative
// or too large is an Error (index_error); some devices report it later.
PLUGRAD_API Tensor embedding(const Tensor& weight, const Tensor& indices);
// Sets each element to 0 with probability p and divides the others by 1 - p; returns x if training is false or p is 0. Draws
// from the device's generator. Floating dtypes. Throws Error (invalid) for a p outside [0, 1].
PLUGRAD_API Tensor dropout(const Tensor& x, double p = 0.5, bool training = true);

}  // namespace plugrad
