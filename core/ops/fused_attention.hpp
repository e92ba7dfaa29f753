// Attention as a single op, for devices with such an op.
#pragma once
#include <core/ops/run.hpp>
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// The operands of an attention without dropout. The caller has checked that they fit each other. mask may be undefined.
struct AttentionOperands {
  Tensor query, key, value, mask;
  double scale;
  bool causal, shares_heads;
};

// The mask as an operand of the op: the number 0 in the place of an undefined mask.
class MaskOperand {
 public:
  explicit MaskOperand(const Tensor& mask, DType dtype) : mask_(mask), none_(immediate(static_cast<uint8_t>(dtype), 0, 0)) {}
  operator Operand() const { return mask_.defined() ? Operand(mask_) : Operand(none_); }

 private:
  const Tensor& mask_;
  Immediate none_;
};

// The result, or an undefined tensor if the op does not serve these operands or the device has no kernel for it.
Tensor fused_attention(const AttentionOperands& operands);

// The weights of the keys, by ops with gradients: scores (.., l, s) are scaled already; mask may be undefined.
Tensor attention_weights(const Tensor& scores, const Tensor& mask, bool causal);

}  // namespace plugrad
