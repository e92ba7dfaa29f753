// The shader of a fusion (sdk/fusion.h): SPIR-V, written without a compiler.
#pragma once
#include <plugrad/sdk/fusion.hpp>

#include <cstdint>
#include <vector>

namespace plugrad::vulkan {

struct FusionModule {
  std::vector<uint32_t> words;       // empty if the fusion cannot be written
  unsigned reduced = 0;              // the axes of all reductions; bit d: axis d
  std::vector<uint32_t> reductions;  // their opcodes, in their order
  bool goes_on = false;              // elements depend on the results of reductions
};

// Writes elementwise ops and reductions of f32 and bool, and elementwise ops behind a product. Returns an empty module for a
// fusion with ops of another kind, with more than eight reductions or reductions over different axes, with a change to a
// repeated input, or with a long time of compilation.
FusionModule module_of(const plugrad_fusion& fusion);
// Returns how many of the first instructions a module can have.
uint32_t reach_of(const plugrad_fusion& fusion);

}  // namespace plugrad::vulkan
