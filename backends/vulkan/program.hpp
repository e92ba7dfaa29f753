// Programs of compiled steps as pipelines: sdk/program.h.
#pragma once
#include <backends/vulkan/pipelines.hpp>

#include <plugrad/sdk/program.hpp>

namespace plugrad::vulkan {

// Returns the kernel, or null for a program that has other than elementwise ops of f32 and bool.
std::unique_ptr<ProgramKernel> make_program(OpenDevice& device, Pipelines& pipelines, const plugrad_program& program);

}  // namespace plugrad::vulkan
