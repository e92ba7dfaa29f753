// Statistics that skip NaN, statistics of several variables, and integrals and slopes of sampled functions. For axes and
// keepdim see sum.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <vector>

namespace plugrad {

// Returns the sum of the elements except NaN; 0 if there are no such elements. NaN gets no gradient. See sum.
PLUGRAD_API Tensor nansum(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
// Returns the mean of the elements except NaN; NaN if there are no such elements. NaN gets no gradient. See mean.
PLUGRAD_API Tensor nanmean(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
// Returns the variance of the elements except NaN; NaN if there are no such elements. NaN gets no gradient. See var.
PLUGRAD_API Tensor nanvar(const Tensor& x, const Shape& axes = {}, bool keepdim = false, double correction = 1);
// Returns the standard deviation of the elements except NaN; NaN if there are no such elements. NaN gets no gradient. See
// std.
PLUGRAD_API Tensor nanstd(const Tensor& x, const Shape& axes = {}, bool keepdim = false, double correction = 1);
// Returns the variance and the mean: see var and mean.
PLUGRAD_API std::vector<Tensor> var_mean(const Tensor& x, const Shape& axes = {}, bool keepdim = false,
                                         double correction = 1);
// Returns the standard deviation and the mean: see std and mean.
PLUGRAD_API std::vector<Tensor> std_mean(const Tensor& x, const Shape& axes = {}, bool keepdim = false,
                                         double correction = 1);
// Returns the covariances (m, m) of m variables, the rows of x, over their observations; for 1 variable (rank 0 or 1) a
// number. fweights (integers) holds the number of times that each observation counts, aweights the weight of each
// observation. Throws Error (invalid) if shapes do not fit.
PLUGRAD_API Tensor cov(const Tensor& x, int64_t correction = 1, const Tensor& fweights = {}, const Tensor& aweights = {});
// Returns Pearson's correlation coefficients of the rows of x, limited to [-1, 1].
PLUGRAD_API Tensor corrcoef(const Tensor& x);

// Returns the integral of y along an axis by the trapezoidal rule, at distances dx or between the points x, a vector or a
// tensor that broadcasts to y.
PLUGRAD_API Tensor trapezoid(const Tensor& y, double dx = 1, int axis = -1);
PLUGRAD_API Tensor trapezoid(const Tensor& y, const Tensor& x, int axis = -1);
// Returns the integrals of y up to each element but the first: see trapezoid.
PLUGRAD_API Tensor cumulative_trapezoid(const Tensor& y, double dx = 1, int axis = -1);
PLUGRAD_API Tensor cumulative_trapezoid(const Tensor& y, const Tensor& x, int axis = -1);
// Returns the slopes along each of the axes, or along all axes: central differences of second order inside, and differences
// of order edge_order (1 or 2) at the ends. spacing is the distance between elements along all axes. Throws Error (invalid)
// for an axis of fewer than edge_order + 1 elements.
PLUGRAD_API std::vector<Tensor> gradient(const Tensor& x, double spacing = 1, const Shape& axes = {},
                                         int64_t edge_order = 1);
// Takes a distance for each axis as spacing.
PLUGRAD_API std::vector<Tensor> gradient(const Tensor& x, const std::vector<double>& spacing, const Shape& axes = {},
                                         int64_t edge_order = 1);
// Takes the coordinates of the elements, a vector for each axis, as spacing.
PLUGRAD_API std::vector<Tensor> gradient(const Tensor& x, const std::vector<Tensor>& spacing, const Shape& axes = {},
                                         int64_t edge_order = 1);

}  // namespace plugrad
