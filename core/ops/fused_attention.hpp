// Attention as one op, for devices that have it.
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// The operands of an attention without dropout, which are known to fit each other. mask may be undefined.
struct AttentionOperands {
  Tensor query, key, value, mask;
  double scale;
  bool causal, shares_heads;
};

// The result, or an undefined tensor if the op does not serve these operands or the device has no kernel for it.
Tensor fused_attention(const AttentionOperands& operands);

// The weights of the keys, by ops that can be recorded: scores (.., l, s) are scaled already; mask may be undefined.
Tensor attention_weights(const Tensor& scores, const Tensor& mask, bool causal);

}  // namespace plugrad
