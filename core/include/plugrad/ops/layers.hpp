// The functions behind layers of networks. An undefined weight or bias is left out.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <optional>

namespace plugrad {

// x (.., k) times the transpose of weight (n, k), plus bias (n): (.., n). A weight of shape (k) gives (..). Floating dtypes.
// Throws Error (invalid), which names both shapes.
PLUGRAD_API Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});
// The rows of weight (v, d) that indices (i64, any shape) name: indices' shape and an axis of d. An index that is negative
// or too large is an Error (index_error); some devices report it later. The row padding_idx, which may count from the end,
// gets no gradient.
PLUGRAD_API Tensor embedding(const Tensor& weight, const Tensor& indices, std::optional<int64_t> padding_idx = std::nullopt);

enum class BagMode { sum, mean, max };
// The sums, means or largest elements of the rows of weight (v, d) that each bag of indices names: (b, d). indices (b, n)
// holds bags of n indices, or indices (n) the bags that begin at offsets (b), of which the first is 0. An empty bag gives 0.
// Indices equal to padding_idx do not count. per_sample_weights, in the shape of indices, multiplies rows that are summed.
// include_last_offset: offsets (b + 1) ends with n. Of equal elements the first one gets the gradient of max. Throws Error
// (invalid) if shapes do not fit.
PLUGRAD_API Tensor embedding_bag(const Tensor& weight, const Tensor& indices, const Tensor& offsets = {},
                                 BagMode mode = BagMode::mean, const Tensor& per_sample_weights = {},
                                 bool include_last_offset = false, std::optional<int64_t> padding_idx = std::nullopt);
// Sets each element to 0 with probability p and divides the others by 1 - p; returns x if training is false or p is 0. Draws
// from the device's generator. Floating dtypes. Throws Error (invalid) for a p outside [0, 1].
PLUGRAD_API Tensor dropout(const Tensor& x, double p = 0.5, bool training = true);
// The same for whole channels of x (n, c, ..), of which each is dropped or kept as one; without n, x has one axis less.
// dropout2d takes x of rank 3 as (n, c, l).
PLUGRAD_API Tensor dropout1d(const Tensor& x, double p = 0.5, bool training = true);
PLUGRAD_API Tensor dropout2d(const Tensor& x, double p = 0.5, bool training = true);
PLUGRAD_API Tensor dropout3d(const Tensor& x, double p = 0.5, bool training = true);
// dropout for selu: dropped elements get the value that selu takes for -infinity, and then all are scaled and moved, which
// keeps mean 0 and variance 1.
PLUGRAD_API Tensor alpha_dropout(const Tensor& x, double p = 0.5, bool training = false);
// alpha_dropout of whole channels of x (n, c, ..).
PLUGRAD_API Tensor feature_alpha_dropout(const Tensor& x, double p = 0.5, bool training = false);

}  // namespace plugrad
