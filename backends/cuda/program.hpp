// Programs of compiled steps (sdk/program.h): NVRTC compiles each in the background, and until it has, calls run singly.
#pragma once
#include <backends/cuda/nvrtc.hpp>

#include <plugrad/sdk/program.hpp>

#include <memory>
#include <string>

namespace plugrad::cuda {

enum class Compiling : uint8_t { never, in_background, at_once };

// Returns the kernel, or null if source_of writes no source. `nvrtc` outlives it.
std::unique_ptr<ProgramKernel> make_program(OpenDevice& device, const plugrad_program& program, const Nvrtc& nvrtc,
                                            const std::string& architecture, Compiling when);

}  // namespace plugrad::cuda
