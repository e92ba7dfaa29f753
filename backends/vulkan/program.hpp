// Programs of compiled steps as pipelines: sdk/program.h.
#pragma once
#include <backends/vulkan/pipelines.hpp>

#include <plugrad/sdk/program.hpp>

namespace plugrad::vulkan {

// Returns the kernel, or null if module_of writes no module.
std::unique_ptr<ProgramKernel> make_program(OpenDevice& device, Pipelines& pipelines, const plugrad_program& program);

}  // namespace plugrad::vulkan
