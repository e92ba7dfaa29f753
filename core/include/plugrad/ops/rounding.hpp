// Elementwise rounding to whole numbers. The result has x's dtype; integers and bools are returned unchanged. Zeros keep the
// sign of x. The gradient is 0.
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

PLUGRAD_API Tensor floor(const Tensor& x);  // Returns the largest whole number that is not above x
PLUGRAD_API Tensor ceil(const Tensor& x);   // Returns the smallest whole number that is not below x
PLUGRAD_API Tensor trunc(const Tensor& x);  // Returns x rounded towards zero
PLUGRAD_API Tensor round(const Tensor& x);  // Returns x rounded to the nearest whole number, ties to even
// Rounds to `decimals` decimals, or, if decimals is negative, to a multiple of 10^-decimals.
PLUGRAD_API Tensor round(const Tensor& x, int64_t decimals);

}  // namespace plugrad
