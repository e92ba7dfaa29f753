// Programs of compiled steps (sdk/program.h): NVRTC compiles each in the background, and until it has, calls run singly.
#pragma once
#include <backends/cuda/nvrtc.hpp>

#include <plugrad/sdk/program.hpp>

#include <memory>
#include <string>

namespace plugrad::cuda {

enum class Compiling : uint8_t { never, in_background, at_once };

// Returns the kernel, which declines every call until it is compiled, or null if source_of writes no source. `nvrtc` lives
// longer.
std::unique_ptr<ProgramKernel> make_program(OpenDevice& device, const plugrad_program& program, const Nvrtc& nvrtc,
                                            const std::string& architecture);
// Compiles what make_program returned, now or in the background. The kernel lives as long as the process.
void compile_program(ProgramKernel& kernel, Compiling when);

}  // namespace plugrad::cuda
