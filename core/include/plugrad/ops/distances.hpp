// Distances and directions of vectors. Floating dtypes; halves are computed in f32. For the p-norm see norm: p may be 0 or
// infinite. Throws Error (invalid) with the shapes if they do not fit.
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// Returns the p-norm of x - y as a tensor of rank 0; x and y broadcast.
PLUGRAD_API Tensor dist(const Tensor& x, const Tensor& y, double p = 2);
// Returns the p-norms of all differences of rows: x1 (.., n, m) and x2 (.., k, m) give (.., n, k); the leading axes
// broadcast. The gradient is 0 at distance 0. Takes memory for all differences, but for p = 2 and n or k above 25 it uses a
// matrix product and loses digits where rows are close. Throws Error (invalid) for a negative p.
PLUGRAD_API Tensor cdist(const Tensor& x1, const Tensor& x2, double p = 2);
// Returns the p-norm of x1 - x2 + eps along the last axis; x1 and x2 broadcast.
PLUGRAD_API Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p = 2, double eps = 1e-6,
                                     bool keepdim = false);
// Returns the sum along an axis of x1 / |x1| times x2 / |x2|. Lengths below eps count as eps. x1 and x2 broadcast.
PLUGRAD_API Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, int axis = 1, double eps = 1e-8);
// Returns x divided by its p-norm along an axis, or by eps if the norm is smaller.
PLUGRAD_API Tensor normalize(const Tensor& x, double p = 2, int axis = 1, double eps = 1e-12);
// Returns x with each slice along an axis scaled down to the p-norm maxnorm if the slice's p-norm is larger.
PLUGRAD_API Tensor renorm(const Tensor& x, double p, int axis, double maxnorm);

}  // namespace plugrad
