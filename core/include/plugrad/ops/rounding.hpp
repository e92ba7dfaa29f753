// Rounding to whole numbers, elementwise. The result has x's dtype; integers and bools are returned as they are. Zeros keep
// the sign of x. The gradient is 0.
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

PLUGRAD_API Tensor floor(const Tensor& x);  // the largest whole number that is not above x
PLUGRAD_API Tensor ceil(const Tensor& x);   // the smallest whole number that is not below x
PLUGRAD_API Tensor trunc(const Tensor& x);  // towards zero
PLUGRAD_API Tensor round(const Tensor& x);  // to the nearest, ties to even
// To so many decimals, or, if it is negative, to a multiple of 10^-decimals.
PLUGRAD_API Tensor round(const Tensor& x, int64_t decimals);

}  // namespace plugrad
