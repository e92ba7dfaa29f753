// Functions of layers of networks. An undefined weight or bias is left out.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <optional>

namespace plugrad {

// Returns x (.., k) times the transpose of weight (n, k), plus bias (n): (.., n). A weight of shape (k) gives (..). Floating
// dtypes. Throws Error (invalid) with both shapes if they do not fit.
PLUGRAD_API Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});
// Returns the rows of weight (v, d) at indices (i64, any shape), with the shape of indices and a last axis of extent d. A
// negative or too large index is an Error (index_error); some devices report it later. The row padding_idx gets no gradient;
// a negative padding_idx counts from the end.
PLUGRAD_API Tensor embedding(const Tensor& weight, const Tensor& indices, std::optional<int64_t> padding_idx = std::nullopt);

enum class BagMode { sum, mean, max };
// Returns the sums, means or largest elements of the rows of weight (v, d) for each bag of indices: (b, d). indices (b, n)
// holds bags of n indices; indices (n) holds bags whose starts are offsets (b), beginning with 0. An empty bag gives 0.
// Indices equal to padding_idx do not count. per_sample_weights, in the shape of indices, multiplies the rows of
// BagMode::sum. include_last_offset: offsets (b + 1) ends with n. In BagMode::max the first of equal elements gets the
// gradient. Throws Error (invalid) if shapes do not fit.
PLUGRAD_API Tensor embedding_bag(const Tensor& weight, const Tensor& indices, const Tensor& offsets = {},
                                 BagMode mode = BagMode::mean, const Tensor& per_sample_weights = {},
                                 bool include_last_offset = false, std::optional<int64_t> padding_idx = std::nullopt);
// Sets each element to 0 with probability p and divides the kept elements by 1 - p; returns x if training is false or p is
// 0. Draws from the device's generator. Floating dtypes. Throws Error (invalid) for a p outside [0, 1].
PLUGRAD_API Tensor dropout(const Tensor& x, double p = 0.5, bool training = true);
// Drops whole channels of x (n, c, ..) as dropout drops elements; without n, x has one axis less. dropout2d takes x of rank
// 3 as (n, c, l).
PLUGRAD_API Tensor dropout1d(const Tensor& x, double p = 0.5, bool training = true);
PLUGRAD_API Tensor dropout2d(const Tensor& x, double p = 0.5, bool training = true);
PLUGRAD_API Tensor dropout3d(const Tensor& x, double p = 0.5, bool training = true);
// Drops elements as dropout does, but for selu: dropped elements become selu(-infinity), and then all elements are scaled
// and shifted to keep mean 0 and variance 1.
PLUGRAD_API Tensor alpha_dropout(const Tensor& x, double p = 0.5, bool training = false);
// Drops whole channels of x (n, c, ..) as alpha_dropout drops elements.
PLUGRAD_API Tensor feature_alpha_dropout(const Tensor& x, double p = 0.5, bool training = false);

}  // namespace plugrad
