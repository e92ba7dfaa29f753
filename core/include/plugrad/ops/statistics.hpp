// Further reductions over `axes`, or over all axes if `axes` is empty; negative axes count from the end. keepdim keeps the
// reduced axes with extent 1.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <vector>

namespace plugrad {

// Returns ln(sum(e^x)), without overflow. The result for no elements is -inf. Floating dtypes.
PLUGRAD_API Tensor logsumexp(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
// Returns the row-major index (i64), within the reduced axes, of the first smallest element. Throws Error (invalid) for no
// elements.
PLUGRAD_API Tensor argmin(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
// Returns the product of the elements. Products of bools and integers are i64. The product of no elements is 1. The gradient
// is right where elements are 0.
PLUGRAD_API Tensor prod(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
// Returns the variance: the sum of squared distances from the mean, divided by the number of elements less correction.
// Floating dtypes. If the divisor is not positive, the result is NaN or infinite.
PLUGRAD_API Tensor var(const Tensor& x, const Shape& axes = {}, bool keepdim = false, double correction = 1);
// Returns the square root of var. The gradient is 0 where the result is 0.
PLUGRAD_API Tensor stddev(const Tensor& x, const Shape& axes = {}, bool keepdim = false, double correction = 1);
// Returns the p-norm, sum(|x|^p)^(1/p). p may be infinite (the largest |x|), -infinite (the smallest) or 0 (the number of
// elements different from 0). Floating dtypes. The gradient is 0 where an element is 0 or, unless p is 1, the norm is 0.
// Throws Error (invalid) for no elements and an infinite p.
PLUGRAD_API Tensor norm(const Tensor& x, double p = 2, const Shape& axes = {}, bool keepdim = false);

// The value of a quantile between two elements.
enum class Interpolation { linear, lower, higher, midpoint, nearest };
// The elements at the place q (n - 1) of the n sorted elements, counted from 0. Between two elements `interpolation` chooses
// the result; nearest rounds halves to even. If q is a list or a tensor of rank 1, the result has a first axis of the length
// of q. The result is NaN if an element is NaN. The gradient goes to both elements around the quantile. Integers and bools
// give f32. Throws Error (invalid) for no elements and for q outside [0, 1]; for a tensor q it waits for the device to check
// q. A compiled step does not wait: there the result for such an element is NaN.
PLUGRAD_API Tensor quantile(const Tensor& x, double q, const Shape& axes = {}, bool keepdim = false,
                            Interpolation interpolation = Interpolation::linear);
PLUGRAD_API Tensor quantile(const Tensor& x, const std::vector<double>& q, const Shape& axes = {}, bool keepdim = false,
                            Interpolation interpolation = Interpolation::linear);
PLUGRAD_API Tensor quantile(const Tensor& x, const Tensor& q, const Shape& axes = {}, bool keepdim = false,
                            Interpolation interpolation = Interpolation::linear);
// Returns the quantile of the elements except NaN; NaN if all elements are NaN.
PLUGRAD_API Tensor nanquantile(const Tensor& x, double q, const Shape& axes = {}, bool keepdim = false,
                               Interpolation interpolation = Interpolation::linear);
PLUGRAD_API Tensor nanquantile(const Tensor& x, const std::vector<double>& q, const Shape& axes = {}, bool keepdim = false,
                               Interpolation interpolation = Interpolation::linear);
PLUGRAD_API Tensor nanquantile(const Tensor& x, const Tensor& q, const Shape& axes = {}, bool keepdim = false,
                               Interpolation interpolation = Interpolation::linear);

}  // namespace plugrad
