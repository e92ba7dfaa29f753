// Functions of attention. Floating dtypes; all tensors have the same dtype.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <optional>

namespace plugrad {

// Returns softmax(query key^T scale) value, with the softmax over the keys: query (.., l, e), key (.., s, e) and value (..,
// s, v) give (.., l, v). The leading axes broadcast. scale is 1 / sqrt(e) by default. attn_mask broadcasts to (.., l, s); a
// mask of query's dtype is added to the products. A key has no weight where the mask is -inf or false; a query without any
// key gives 0. is_causal lets query i see the keys 0..i, and excludes attn_mask. dropout_p drops weights as dropout does.
// With enable_gqa, key and value may have fewer heads (axis -3) than query, and a group of query's heads shares each head.
// Throws Error (invalid) if shapes do not fit.
PLUGRAD_API Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                                const Tensor& attn_mask = {}, double dropout_p = 0, bool is_causal = false,
                                                std::optional<double> scale = std::nullopt, bool enable_gqa = false);
// Rotates pairs of elements of x (.., d) by angles whose cosines and sines (.., d / 2) broadcast to the pairs: (a, b)
// becomes (a cos - b sin, b cos + a sin). The pairs are elements i and i + d / 2, or 2 i and 2 i + 1 if interleaved. Throws
// Error (invalid) for an odd d.
PLUGRAD_API Tensor rotary_embedding(const Tensor& x, const Tensor& cos, const Tensor& sin, bool interleaved = false);

}  // namespace plugrad
