// Joins elementwise steps to runs of machine code.
#pragma once
#include <backends/cpu/program_plan.hpp>

#include <vector>

namespace plugrad::cpu {

// The same steps in an order in which many of them can be joined, as they were or one for several. is_output: by value.
std::vector<ProgramStep> fused_steps(const std::vector<ProgramStep>& steps, const std::vector<ProgramValue>& values,
                                     const std::vector<bool>& is_output, int vector_bytes);

}  // namespace plugrad::cpu
