// Queries of the op table.
#pragma once
#include <plugrad/sdk/ops.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace plugrad {

enum class Op : uint32_t {
#define PLUGRAD_OP(name, id, shape, tier, operands, ulps, gradient, definition) name = id,
#include <plugrad/sdk/ops.def>
#undef PLUGRAD_OP
};

// Whether all operands with memory have the same shape.
constexpr bool is_elementwise(uint32_t opcode) {
  const OpInfo* op = op_info(opcode);
  return op && op->shape == OpShape::elementwise;
}
constexpr bool is_attention(uint32_t opcode) {
  return opcode == PLUGRAD_OP_ATTENTION || opcode == PLUGRAD_OP_ATTENTION_BACKWARD;
}
// Whether the op reads this output before it writes it.
constexpr bool is_in_out(uint32_t opcode, int operand) {
  const OpInfo* op = op_info(opcode);
  return op && op->is_in_out(operand);
}

// The operand with the dtype in the cache key of the op's kernels: the last operand except indices, conditions,
// statistics, codes and their scales, and the source of CAST.
inline constexpr auto kKeyOperands = [] {
  std::array<uint8_t, 256> operands{};
  for (const OpInfo& op : kOps) {
    const size_t place = std::string_view(op.operands).find_last_not_of("IBDJKUSW");
    if (op.opcode < operands.size() && place != std::string_view::npos) operands[op.opcode] = static_cast<uint8_t>(place);
  }
  return operands;
}();
constexpr uint8_t key_operand(uint32_t opcode) { return opcode < kKeyOperands.size() ? kKeyOperands[opcode] : uint8_t{0}; }

// "RELU_BACKWARD", of static storage duration
const char* op_name(uint32_t opcode);
// "relu_backward"
std::string op_label(uint32_t opcode);
// "f32", or "dtype 9" for an unknown dtype
std::string dtype_label(uint8_t dtype);
// Bytes of an element. Requires a dtype of the table.
// An entry for every number, so that no op checks the range.
inline constexpr auto kElementSizes = [] {
  std::array<uint8_t, 256> sizes{};
  for (uint8_t dtype = 0; dtype < kDTypeIds; ++dtype) sizes[dtype] = static_cast<uint8_t>(element_size(dtype));
  return sizes;
}();
constexpr uint64_t dtype_size(uint8_t dtype) { return kElementSizes[dtype]; }

}  // namespace plugrad
