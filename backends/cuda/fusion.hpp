// Fusions of compiled steps (sdk/fusion.h): NVRTC compiles each in the background, and until it has, calls run singly.
#pragma once
#include <backends/cuda/code_cache.hpp>
#include <backends/cuda/nvrtc.hpp>

#include <plugrad/sdk/fusion.hpp>

#include <memory>
#include <string>

namespace plugrad::cuda {

enum class Compiling : uint8_t { never, in_background, at_once };

// What compiles for a device. It outlives the fusions.
struct FusionTools {
  const Nvrtc& nvrtc;
  CodeCache& codes;
  const std::string& architecture;  // "sm_90"
};

// Returns the kernel, or null if source_of writes no source. The kernel declines every call until it is compiled.
std::unique_ptr<FusionKernel> make_fusion(OpenDevice& device, const plugrad_fusion& fusion, const FusionTools& tools);
// Loads the code of a kernel of make_fusion, if a process has compiled it before; otherwise compiles it, now or in the
// background. The kernel lives as long as the process.
void compile_fusion(FusionKernel& kernel, Compiling when);

}  // namespace plugrad::cuda
