// Joins elementwise steps to runs of machine code.
#pragma once
#include <backends/cpu/program_plan.hpp>

#include <memory>
#include <vector>

namespace plugrad::cpu {

struct FusedStep {
  ProgramStep step;  // as it was, or one for several, with its function
  std::shared_ptr<void> code = {};
};

// The same steps in an order in which many of them can be joined. is_output: by value.
std::vector<FusedStep> fused_steps(const std::vector<ProgramStep>& steps, const std::vector<ProgramValue>& values,
                                   const std::vector<bool>& is_output, int vector_bytes);

}  // namespace plugrad::cpu
