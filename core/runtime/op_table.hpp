// The op table, as core reads it.
#pragma once
#include <plugrad/sdk/abi.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace plugrad {

enum class Op : uint32_t {
#define PLUGRAD_OP(name, id, family, outputs, inputs, tier, operands, definition) name = id,
#include <plugrad/sdk/ops.def>
#undef PLUGRAD_OP
};

struct OpRow {
  std::string_view name, family, operands;
};

// The row of an opcode; empty for a private one.
constexpr OpRow op_row(uint32_t opcode) {
  switch (opcode) {
#define PLUGRAD_OP(name, id, family, outputs, inputs, tier, operands, definition) \
  case id: return {#name, #family, operands};
#include <plugrad/sdk/ops.def>
#undef PLUGRAD_OP
    default: return {};
  }
}

// "relu_backward"
std::string op_label(uint32_t opcode);
// "f32"; "dtype 9" for one that core does not have
std::string dtype_label(uint8_t dtype);
// Bytes of an element of one of the contract's dtypes.
inline constexpr uint8_t kDTypeSizes[16] = {1, 4, 8, 2, 2, 4, 8, 1, 1, 1, 1, 1, 1, 1, 1, 1};
constexpr uint64_t dtype_size(uint8_t dtype) { return kDTypeSizes[dtype & 15]; }

}  // namespace plugrad
