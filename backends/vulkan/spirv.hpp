// The backend's constants and functions for SPIR-V's instructions.
#pragma once
#include <cstdint>

namespace plugrad::vulkan {

enum : uint32_t {
  kOpName = 5,
  kOpExtension = 10,
  kOpEntryPoint = 15,
  kOpCapability = 17,
  kOpExecutionMode = 16,
  kOpTypeVoid = 19,
  kOpTypeBool = 20,
  kOpTypeInt = 21,
  kOpTypeFloat = 22,
  kOpConstant = 43,
  kOpFunction = 54,
  kOpFunctionEnd = 56,
  kOpFunctionCall = 57,
  kOpDecorate = 71,
  kOpReturn = 253,
  kOpReturnValue = 254,
  kOpTypeCooperativeMatrixKHR = 4456,
  kOpCooperativeMatrixLoadKHR = 4457,
  kOpCooperativeMatrixStoreKHR = 4458,
  kOpCooperativeMatrixMulAddKHR = 4459,
  kOpTypeCooperativeMatrixNV = 5358,
  kOpCooperativeMatrixLoadNV = 5359,
  kOpCooperativeMatrixStoreNV = 5360,
  kOpCooperativeMatrixMulAddNV = 5361,
  kCapabilityCooperativeMatrixNV = 5357,
  kCapabilityCooperativeMatrixKHR = 6022,
  kDecorationSpecId = 1,
  kHeaderWords = 5,
  kBoundAt = 3,  // in the header: ids are below this word
};

constexpr uint32_t opcode_of(uint32_t word) { return word & 0xffff; }
constexpr uint32_t words_of(uint32_t word) { return word >> 16; }
constexpr uint32_t first_word(uint32_t opcode, uint32_t words) { return words << 16 | opcode; }

}  // namespace plugrad::vulkan
