// Truth values. A number counts as true if it is not 0; NaN is true. Results are bool unless stated otherwise, and have no
// gradient. Reductions take `axes`, or reduce all axes if `axes` is empty; keepdim keeps the reduced axes with extent 1.
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// Returns whether x is false.
PLUGRAD_API Tensor logical_not(const Tensor& x);
// Returns whether a and b are both true. a and b broadcast, and their dtypes may differ.
PLUGRAD_API Tensor logical_and(const Tensor& a, const Tensor& b);
// Returns whether a or b is true. a and b broadcast, and their dtypes may differ.
PLUGRAD_API Tensor logical_or(const Tensor& a, const Tensor& b);
// Returns whether exactly one of a and b is true. a and b broadcast, and their dtypes may differ.
PLUGRAD_API Tensor logical_xor(const Tensor& a, const Tensor& b);
// Returns whether x is NaN; false for integers and bools.
PLUGRAD_API Tensor isnan(const Tensor& x);
// Returns whether x is infinite; false for integers and bools.
PLUGRAD_API Tensor isinf(const Tensor& x);
// Returns whether x is neither infinite nor NaN; true for integers and bools.
PLUGRAD_API Tensor isfinite(const Tensor& x);
// Returns whether |a - b| <= atol + rtol |b|. Equal infinities are close. NaN is close to NaN if equal_nan is set.
PLUGRAD_API Tensor isclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false);
// Returns whether any element is true; false for no elements.
PLUGRAD_API Tensor any(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
// Returns whether all elements are true; true for no elements.
PLUGRAD_API Tensor all(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
// Returns the number of true elements as i64.
PLUGRAD_API Tensor count_nonzero(const Tensor& x, const Shape& axes = {}, bool keepdim = false);

}  // namespace plugrad
