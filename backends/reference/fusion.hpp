// Fusions of the reference backend: each instruction is a call of its own kernel, over values in the workspace.
#pragma once
#include <plugrad/sdk/fusion.hpp>

#include <memory>

namespace plugrad::reference {

// Returns a kernel for the fusion, or null if an instruction has no kernel.
std::unique_ptr<FusionKernel> make_fusion(OpenDevice& device, const plugrad_fusion& fusion);

}  // namespace plugrad::reference
