// The shader of a fusion (sdk/fusion.h): SPIR-V, written without a compiler.
#pragma once
#include <plugrad/sdk/fusion.hpp>

#include <cstdint>
#include <vector>

namespace plugrad::vulkan {

struct FusionModule {
  std::vector<uint32_t> words;       // empty for a fusion that cannot be written
  unsigned reduced = 0;              // the axes of all reductions; bit d: axis d
  std::vector<uint32_t> reductions;  // their opcodes, in their order
  bool goes_on = false;              // elements depend on the results of reductions
};

// Returns an empty module for a fusion that has other than elementwise ops and reductions of f32 and bool, more than eight
// reductions or reductions over different axes, or that changes a repeated input, or that would take long to compile.
FusionModule module_of(const plugrad_fusion& fusion);

}  // namespace plugrad::vulkan
