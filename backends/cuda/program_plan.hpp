// How the kernels of a program that reduces run: as the reduction of a dense operand over the program's space.
#pragma once
#include <backends/cuda/program_reduction.hpp>
#include <backends/cuda/program_shape.hpp>
#include <backends/cuda/program_source.hpp>

#include <plugrad/sdk/program.hpp>

namespace plugrad::cuda {

// Operands, and one for each reduction of a program.
inline constexpr int kProgramSlots = PLUGRAD_PROGRAM_OPERANDS + static_cast<int>(ProgramShape::kMostReductions);

struct ProgramPlan {
  ProgramReduction<kProgramSlots> argument{};  // but for partials and counters
  bool by_packs = false;
  unsigned blocks = 0;

  // Throws BackendError UNSUPPORTED where operands do not fit the packs that the reduction's own kernel reads, or have too
  // many elements for 32-bit offsets.
  ProgramPlan(const plugrad_op& op, const ProgramSource& source, int multiprocessors);
};

// Bytes of workspace for a call, whose operands need have no memory yet.
uint64_t program_workspace(const plugrad_op& op, const ProgramSource& source, int multiprocessors);

}  // namespace plugrad::cuda
