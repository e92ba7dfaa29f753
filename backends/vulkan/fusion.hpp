// Fusions of compiled steps as pipelines: sdk/fusion.h.
#pragma once
#include <backends/vulkan/pipelines.hpp>

#include <plugrad/sdk/fusion.hpp>

namespace plugrad::vulkan {

// Returns the kernel, or null if module_of writes no module.
std::unique_ptr<FusionKernel> make_fusion(OpenDevice& device, Pipelines& pipelines, const plugrad_fusion& fusion);

}  // namespace plugrad::vulkan
