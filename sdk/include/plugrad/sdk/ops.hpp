// The op table of ops.def as C++.
#pragma once
#include <plugrad/sdk/abi.h>
#include <plugrad/sdk/dtypes.hpp>

#include <array>
#include <cstdint>

#pragma GCC visibility push(hidden)
namespace plugrad {
inline namespace sdk_v0_r0 {

// The assumptions that a kernel may make about an op's operands; ops.def explains each value.
enum class OpShape : uint8_t {
  generate,
  copy,
  elementwise,
  reduction,
  rowwise,
  contraction,
  window,
  indexing,
  random,
  update
};

struct OpInfo {
  uint32_t opcode;
  const char* name;
  OpShape shape;
  uint8_t tier;
  uint8_t outputs, inputs;
  char operands[PLUGRAD_MAX_OPERANDS + 1];  // one letter of ops.def per operand, outputs first
  int ulps;                                 // -1: ops.md states the bound
  uint32_t gradient;                        // the opcode of its gradient, or 0

  constexpr int operand_count() const { return outputs + inputs; }
  constexpr bool is_in_out(int operand) const { return operands[operand] >= 'a'; }
  // Returns the dtype of an operand of an op with the dtype `dtype`; 0 for the letters D and S, which leave it open.
  constexpr uint8_t operand_dtype(int operand, uint8_t dtype) const {
    switch (operands[operand]) {
      case 'B': return PLUGRAD_BOOL;
      case 'I': return PLUGRAD_I64;
      case 'J': return PLUGRAD_I32;
      case 'K': return PLUGRAD_I8;
      case 'U': return PLUGRAD_U8;
      case 'A': return is_inexact(dtype) ? dtype : static_cast<uint8_t>(PLUGRAD_I64);
      case 'W': return accumulator_dtype(dtype);
      case 'D':
      case 'S': return 0;
      default: return dtype;
    }
  }
  // Whether the op is defined for this dtype.
  constexpr bool is_for(uint8_t dtype) const {
    for (const char* letter = operands; *letter; ++letter) {
      if ((*letter == 'N' || *letter == 'n') && is_boolean(dtype)) return false;
      if ((*letter == 'F' || *letter == 'f') && !is_inexact(dtype)) return false;
      if (*letter == 'Z' && !is_integer(dtype)) return false;
      if (*letter == 'E' && dtype != PLUGRAD_U8 && dtype != PLUGRAD_I8) return false;
    }
    return element_size(dtype) != 0;  // a known dtype; comparing addresses is not constant under sanitizers
  }
  // Whether tier 0 needs the op in this dtype: in f32; in i64 for indices and counts, except for products of matrices; in
  // bool where elements are moved.
  constexpr bool is_needed_in(uint8_t dtype) const {
    if (tier != 0 || !is_for(dtype)) return false;
    const bool moves = shape == OpShape::copy || opcode == PLUGRAD_OP_FILL;
    if (dtype == PLUGRAD_I64) return shape != OpShape::contraction;
    return dtype == PLUGRAD_F32 || (dtype == PLUGRAD_BOOL && moves);
  }
  // Whether every device with the op accepts every layout.
  constexpr bool serves_every_layout() const { return shape == OpShape::copy || opcode == PLUGRAD_OP_FILL; }
  // Whether the op moves, compares or changes the sign of elements only: denormal numbers stay as they are on every device.
  constexpr bool keeps_denormals() const {
    switch (opcode) {
      case PLUGRAD_OP_FILL:
      case PLUGRAD_OP_COPY:
      case PLUGRAD_OP_NEG:
      case PLUGRAD_OP_ABS:
      case PLUGRAD_OP_SIGN:
      case PLUGRAD_OP_RELU:
      case PLUGRAD_OP_RELU_BACKWARD:
      case PLUGRAD_OP_MAXIMUM:
      case PLUGRAD_OP_MINIMUM:
      case PLUGRAD_OP_EQ:
      case PLUGRAD_OP_NE:
      case PLUGRAD_OP_LT:
      case PLUGRAD_OP_LE:
      case PLUGRAD_OP_WHERE:
      case PLUGRAD_OP_MAX:
      case PLUGRAD_OP_MIN:
      case PLUGRAD_OP_ARGMAX:
      case PLUGRAD_OP_ARGSORT:
      case PLUGRAD_OP_TOPK:
      case PLUGRAD_OP_GATHER:
      case PLUGRAD_OP_MAX_POOL: return true;
      default: return false;
    }
  }
  // Whether an output may be one of the inputs.
  constexpr bool works_in_place() const {
    return shape == OpShape::copy || shape == OpShape::elementwise || shape == OpShape::update;
  }
  // The inputs that may be immediates, and the inputs of one element, as bit sets.
  constexpr uint32_t immediate_inputs() const {
    if (opcode == PLUGRAD_OP_ATTENTION) return 1u << 3;  // the mask
    if (opcode == PLUGRAD_OP_ATTENTION_BACKWARD) return 1u << 4;
    const bool numbers = shape == OpShape::generate || shape == OpShape::elementwise || shape == OpShape::random;
    return numbers || shape == OpShape::update ? (1u << inputs) - 1 : 0;
  }
  constexpr uint32_t scalar_inputs() const {
    if (shape == OpShape::generate || shape == OpShape::random) return (1u << inputs) - 1;
    return shape == OpShape::update ? (1u << inputs) - 2 : 0;
  }
};

namespace detail {
enum class Opcode : uint32_t {
  NONE = 0,
#define PLUGRAD_OP(name, id, shape, tier, operands, ulps, gradient, definition) name = id,
#include <plugrad/sdk/ops.def>
#undef PLUGRAD_OP
};

constexpr OpInfo op_row(uint32_t opcode, const char* name, OpShape shape, uint8_t tier, const char* operands, int ulps,
                        Opcode gradient) {
  OpInfo op{opcode, name, shape, tier, 0, 0, {}, ulps, static_cast<uint32_t>(gradient)};
  bool inputs = false;
  for (int n = 0; *operands; ++operands) {
    if (*operands == '<') {
      inputs = true;
      continue;
    }
    op.operands[n++] = *operands;
    ++(inputs ? op.inputs : op.outputs);
  }
  return op;
}
}  // namespace detail

inline constexpr OpInfo kOps[] = {
#define PLUGRAD_OP(name, id, shape, tier, operands, ulps, gradient, definition) \
  detail::op_row(id, #name, OpShape::shape, tier, operands, ulps, detail::Opcode::gradient),
#include <plugrad/sdk/ops.def>
#undef PLUGRAD_OP
};

namespace detail {
// The index of an opcode in kOps plus 1; 0: unknown.
inline constexpr std::array<uint8_t, 256> kOpPlaces = [] {
  std::array<uint8_t, 256> places{};
  for (size_t i = 0; i < std::size(kOps); ++i) places[kOps[i].opcode] = static_cast<uint8_t>(i + 1);
  return places;
}();
}  // namespace detail

// Returns the row of an opcode in the op table, or null for an unknown opcode.
constexpr const OpInfo* op_info(uint32_t opcode) {
  const uint8_t place = opcode < detail::kOpPlaces.size() ? detail::kOpPlaces[opcode] : uint8_t{0};
  return place ? &kOps[place - 1] : nullptr;
}

}  // namespace sdk_v0_r0
}  // namespace plugrad
#pragma GCC visibility pop
