// Truth values. A number counts as true if it is not 0; NaN is true. Results are bool unless stated otherwise, and have no
// gradient. Reductions take `axes`, or all if none is given; keepdim keeps them with extent 1.
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// Whether x is false.
PLUGRAD_API Tensor logical_not(const Tensor& x);
// Whether a and b are true. They broadcast, and their dtypes may differ.
PLUGRAD_API Tensor logical_and(const Tensor& a, const Tensor& b);
// Whether a or b is true. They broadcast, and their dtypes may differ.
PLUGRAD_API Tensor logical_or(const Tensor& a, const Tensor& b);
// Whether exactly one of a and b is true. They broadcast, and their dtypes may differ.
PLUGRAD_API Tensor logical_xor(const Tensor& a, const Tensor& b);
// Whether x is NaN; false for integers and bools.
PLUGRAD_API Tensor isnan(const Tensor& x);
// Whether x is infinite; false for integers and bools.
PLUGRAD_API Tensor isinf(const Tensor& x);
// Whether x is neither infinite nor NaN; true for integers and bools.
PLUGRAD_API Tensor isfinite(const Tensor& x);
// |a - b| <= atol + rtol |b|; equal infinities are close, and NaN is close to NaN if equal_nan.
PLUGRAD_API Tensor isclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false);
// Of no elements: false.
PLUGRAD_API Tensor any(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
// Of no elements: true.
PLUGRAD_API Tensor all(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
// How many elements are true; i64.
PLUGRAD_API Tensor count_nonzero(const Tensor& x, const Shape& axes = {}, bool keepdim = false);

}  // namespace plugrad
