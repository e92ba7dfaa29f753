// The blocks of fusions: what may be a head, and, for hosts and tests, how a block is written.
#pragma once
#include <plugrad/sdk/fusion.h>
#include <plugrad/sdk/ops.hpp>

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#pragma GCC visibility push(hidden)
namespace plugrad {
inline namespace sdk_v0_r0 {

// Returns the bit of `contents` for an op that may be a fusion's head, or 0.
constexpr uint32_t head_content(uint32_t opcode) {
  switch (opcode) {
    case PLUGRAD_OP_MATMUL:
    case PLUGRAD_OP_MATMUL_ADD: return PLUGRAD_FUSION_PRODUCTS;
    case PLUGRAD_OP_LAYER_NORM:
    case PLUGRAD_OP_RMS_NORM:
    case PLUGRAD_OP_SOFTMAX:
    case PLUGRAD_OP_LOG_SOFTMAX: return PLUGRAD_FUSION_NORMS;
    case PLUGRAD_OP_ATTENTION: return PLUGRAD_FUSION_ATTENTION;
    default: return 0;
  }
}

struct FusionParts {
  struct Line {
    uint32_t opcode;
    std::vector<uint16_t> arguments;
    uint8_t results = 1;
    std::vector<std::byte> attributes = {};  // the op's struct, or nothing
  };
  uint16_t rank = 1, inputs = 0;
  std::vector<plugrad_fusion_value> values;  // inputs, then results
  std::vector<Line> lines;
  std::vector<plugrad_fusion_output> outputs;
};

namespace detail {
template <class T> uint32_t append_to_block(std::vector<uint64_t>& block, const std::vector<T>& items) {
  const size_t words = block.size(), bytes = items.size() * sizeof(T);
  block.resize(words + (bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t));
  if (bytes) std::memcpy(block.data() + words, items.data(), bytes);
  return static_cast<uint32_t>(words * sizeof(uint64_t));
}
}  // namespace detail

// The block begins with its plugrad_fusion. Equal parts give equal blocks.
inline std::vector<uint64_t> packed(const FusionParts& parts) {
  std::vector<uint64_t> block(sizeof(plugrad_fusion) / sizeof(uint64_t));
  std::vector<plugrad_fusion_instruction> instructions;
  std::vector<uint16_t> arguments;
  for (const FusionParts::Line& line : parts.lines) {
    const uint32_t attributes = line.attributes.empty() ? 0 : detail::append_to_block(block, line.attributes);
    instructions.push_back({line.opcode, static_cast<uint16_t>(arguments.size()),
                            static_cast<uint8_t>(line.arguments.size()), line.results, attributes});
    arguments.insert(arguments.end(), line.arguments.begin(), line.arguments.end());
  }
  plugrad_fusion head{};
  head.rank = parts.rank;
  head.inputs = parts.inputs;
  head.outputs = static_cast<uint16_t>(parts.outputs.size());
  head.instructions = static_cast<uint16_t>(instructions.size());
  head.values = static_cast<uint16_t>(parts.values.size());
  head.arguments = static_cast<uint16_t>(arguments.size());
  head.values_at = detail::append_to_block(block, parts.values);
  head.instructions_at = detail::append_to_block(block, instructions);
  head.arguments_at = detail::append_to_block(block, arguments);
  head.outputs_at = detail::append_to_block(block, parts.outputs);
  head.struct_size = static_cast<uint32_t>(block.size() * sizeof(uint64_t));
  std::memcpy(block.data(), &head, sizeof head);
  return block;
}

}  // namespace sdk_v0_r0
}  // namespace plugrad
#pragma GCC visibility pop
