// Statistics without NaN, of several variables, and of sampled functions. For axes and keepdim see sum.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <vector>

namespace plugrad {

// The sum of the elements except NaN; 0 without any. NaN gets no gradient. See sum.
PLUGRAD_API Tensor nansum(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
// The mean of the elements except NaN; NaN without any. NaN gets no gradient. See mean.
PLUGRAD_API Tensor nanmean(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
// The variance of the elements except NaN; NaN without any. NaN gets no gradient. See var.
PLUGRAD_API Tensor nanvar(const Tensor& x, const Shape& axes = {}, bool keepdim = false, double correction = 1);
// The standard deviation of the elements except NaN; NaN without any. NaN gets no gradient. See std.
PLUGRAD_API Tensor nanstd(const Tensor& x, const Shape& axes = {}, bool keepdim = false, double correction = 1);
// The variance and the mean.
PLUGRAD_API std::vector<Tensor> var_mean(const Tensor& x, const Shape& axes = {}, bool keepdim = false,
                                         double correction = 1);
// The standard deviation and the mean.
PLUGRAD_API std::vector<Tensor> std_mean(const Tensor& x, const Shape& axes = {}, bool keepdim = false,
                                         double correction = 1);
// The covariances (m, m) of m variables, the rows of x, over their observations; of 1 variable (rank 0 or 1) a number.
// fweights (integers) says how often each observation counts, aweights how much. Throws Error (invalid) if shapes do not
// fit.
PLUGRAD_API Tensor cov(const Tensor& x, int64_t correction = 1, const Tensor& fweights = {}, const Tensor& aweights = {});
// Pearson's correlation coefficients of the rows of x, limited to [-1, 1].
PLUGRAD_API Tensor corrcoef(const Tensor& x);

// The integral of y along an axis by the trapezoidal rule, at distances dx or between the points x, a vector or a tensor
// that broadcasts to y.
PLUGRAD_API Tensor trapezoid(const Tensor& y, double dx = 1, int axis = -1);
PLUGRAD_API Tensor trapezoid(const Tensor& y, const Tensor& x, int axis = -1);
// The integrals up to each element but the first.
PLUGRAD_API Tensor cumulative_trapezoid(const Tensor& y, double dx = 1, int axis = -1);
PLUGRAD_API Tensor cumulative_trapezoid(const Tensor& y, const Tensor& x, int axis = -1);
// The slopes along each of the axes, or along all: central differences of second order inside, and differences of order
// edge_order (1 or 2) at the ends. spacing is the distance of elements along all axes. Throws Error (invalid) for an axis of
// fewer than edge_order + 1 elements.
PLUGRAD_API std::vector<Tensor> gradient(const Tensor& x, double spacing = 1, const Shape& axes = {},
                                         int64_t edge_order = 1);
// The same with a distance for each axis.
PLUGRAD_API std::vector<Tensor> gradient(const Tensor& x, const std::vector<double>& spacing, const Shape& axes = {},
                                         int64_t edge_order = 1);
// The same with the coordinates of the elements, a vector for each axis.
PLUGRAD_API std::vector<Tensor> gradient(const Tensor& x, const std::vector<Tensor>& spacing, const Shape& axes = {},
                                         int64_t edge_order = 1);

}  // namespace plugrad
