// Fusions (plugrad/sdk/fusion.h) of this backend: run by tiles, so the fusion's inner values stay in the caches. A tile goes
// through all steps before the next tile.
#pragma once
#include <backends/cpu/rows.hpp>
#include <plugrad/sdk/fusion.hpp>

#include <memory>

namespace plugrad::cpu {

struct FusionSettings {
  const RowList& rows;  // the device's kernels, without wrappers
  int threads;
  int vector_bytes;  // of the instruction set, for machine code; 0: no code is made
  bool flushes;      // denormal numbers to 0
};

// Returns a kernel for the fusion, or null if these rows do not suffice.
std::unique_ptr<FusionKernel> make_fusion(OpenDevice& device, const plugrad_fusion& fusion, const FusionSettings& settings);

}  // namespace plugrad::cpu
