// The shader of a program (sdk/program.h): SPIR-V, written without a compiler.
#pragma once
#include <plugrad/sdk/program.hpp>

#include <cstdint>
#include <vector>

namespace plugrad::vulkan {

struct ProgramModule {
  std::vector<uint32_t> words;       // empty for a program that cannot be written
  unsigned reduced = 0;              // the axes of all reductions; bit d: axis d
  std::vector<uint32_t> reductions;  // their opcodes, in their order
  bool goes_on = false;              // elements depend on the results of reductions
};

// Returns an empty module for a program that has other than elementwise ops and reductions of f32 and bool, more than eight
// reductions or reductions over different axes, or that changes a repeated input, or that would take long to compile.
ProgramModule module_of(const plugrad_program& program);

}  // namespace plugrad::vulkan
