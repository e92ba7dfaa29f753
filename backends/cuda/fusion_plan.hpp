// Plans the kernels of a reducing fusion: they run as the reduction of a dense operand over the fusion's space.
#pragma once
#include <backends/cuda/fusion_reduction.hpp>
#include <backends/cuda/fusion_shape.hpp>
#include <backends/cuda/fusion_source.hpp>

#include <plugrad/sdk/fusion.hpp>

namespace plugrad::cuda {

// The operands of a fusion, and one slot for each of its reductions.
inline constexpr int kFusionSlots = PLUGRAD_FUSION_OPERANDS + static_cast<int>(FusionShape::kMostReductions);

struct FusionPlan {
  FusionReduction<kFusionSlots> argument{};  // but for partials and counters
  bool by_packs = false;
  unsigned blocks = 0;

  // Throws BackendError UNSUPPORTED where operands do not fit the packs of the reduction's own kernel, or have too many
  // elements for 32-bit offsets.
  FusionPlan(const plugrad_op& op, const FusionSource& source, int multiprocessors);
};

// Returns the bytes of workspace for a call. The call's operands need no memory yet.
uint64_t fusion_workspace(const plugrad_op& op, const FusionSource& source, int multiprocessors);

}  // namespace plugrad::cuda
