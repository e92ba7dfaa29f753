// Further reductions over `axes`, or over all if none is given; negative axes count from the end. keepdim keeps them with
// extent 1.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <vector>

namespace plugrad {

// ln(sum(e^x)), without overflow. Floating dtypes. For no elements it is -inf.
PLUGRAD_API Tensor logsumexp(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
// The row-major index (i64), within the reduced axes, of the first smallest element. Throws Error (invalid) for no elements.
PLUGRAD_API Tensor argmin(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
// The product. Products of bool and integers are i64. The product of no elements is 1. The gradient is right where elements
// are 0.
PLUGRAD_API Tensor prod(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
// The variance: the sum of squared distances from the mean, divided by the number of elements less correction. Floating
// dtypes. If the divisor is not positive, the result is NaN or infinite.
PLUGRAD_API Tensor var(const Tensor& x, const Shape& axes = {}, bool keepdim = false, double correction = 1);
// The square root of var. The gradient is 0 where it is 0.
PLUGRAD_API Tensor stddev(const Tensor& x, const Shape& axes = {}, bool keepdim = false, double correction = 1);
// The p-norm, sum(|x|^p)^(1/p). p may be infinite (the largest |x|), -infinite (the smallest) or 0 (the number of elements
// different from 0). Floating dtypes. The gradient is 0 where an element is 0 or, unless p is 1, the norm is 0. Throws Error
// (invalid) for no elements and an infinite p.
PLUGRAD_API Tensor norm(const Tensor& x, double p = 2, const Shape& axes = {}, bool keepdim = false);

// The value of a quantile between two elements.
enum class Interpolation { linear, lower, higher, midpoint, nearest };
// The elements at the place q (n - 1) of the sorted n elements, counted from 0; between two elements as `interpolation`
// says, where nearest rounds halves to even. If q is a list or a tensor of rank 1, the result has a first axis of its
// length. NaN if an element is NaN. The gradient goes to both elements around the quantile. Integers and bools give f32.
// Throws Error (invalid) for no elements and for q outside [0, 1]; for a tensor q it waits for the device to see q.
PLUGRAD_API Tensor quantile(const Tensor& x, double q, const Shape& axes = {}, bool keepdim = false,
                            Interpolation interpolation = Interpolation::linear);
PLUGRAD_API Tensor quantile(const Tensor& x, const std::vector<double>& q, const Shape& axes = {}, bool keepdim = false,
                            Interpolation interpolation = Interpolation::linear);
PLUGRAD_API Tensor quantile(const Tensor& x, const Tensor& q, const Shape& axes = {}, bool keepdim = false,
                            Interpolation interpolation = Interpolation::linear);
// The same, without the NaNs; NaN if all elements are NaN.
PLUGRAD_API Tensor nanquantile(const Tensor& x, double q, const Shape& axes = {}, bool keepdim = false,
                               Interpolation interpolation = Interpolation::linear);
PLUGRAD_API Tensor nanquantile(const Tensor& x, const std::vector<double>& q, const Shape& axes = {}, bool keepdim = false,
                               Interpolation interpolation = Interpolation::linear);
PLUGRAD_API Tensor nanquantile(const Tensor& x, const Tensor& q, const Shape& axes = {}, bool keepdim = false,
                               Interpolation interpolation = Interpolation::linear);

}  // namespace plugrad
