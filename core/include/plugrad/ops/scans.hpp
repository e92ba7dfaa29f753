// Sums and products of all elements up to each one, along an axis. They take log2(n) passes over x for n elements along it.
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// Sums of bools and integers are i64.
PLUGRAD_API Tensor cumsum(const Tensor& x, int axis);
// Products of bools and integers are i64, and wrap. The gradient is right at zeros.
PLUGRAD_API Tensor cumprod(const Tensor& x, int axis);

}  // namespace plugrad
