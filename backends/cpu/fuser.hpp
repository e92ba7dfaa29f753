// Joins elementwise steps to runs of machine code.
#pragma once
#include <backends/cpu/fusion_plan.hpp>

#include <vector>

namespace plugrad::cpu {

// Returns the same steps in an order with many joins. A step is unchanged, or stands for several joined steps. is_output: by
// value.
std::vector<FusionStep> fused_steps(const std::vector<FusionStep>& steps, const std::vector<FusionValue>& values,
                                    const std::vector<bool>& is_output, int vector_bytes);

}  // namespace plugrad::cpu
