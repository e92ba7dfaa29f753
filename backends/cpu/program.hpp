// Programs (plugrad/sdk/program.h) of this backend: run by tiles, so that values that only the program needs stay in the
// caches. A tile goes through all steps before the next one.
#pragma once
#include <backends/cpu/rows.hpp>
#include <plugrad/sdk/program.hpp>

#include <memory>

namespace plugrad::cpu {

struct ProgramSettings {
  const RowList& rows;  // the device's kernels, without wrappers
  int threads;
  int vector_bytes;  // of the instruction set, for machine code; 0: none is made
  bool flushes;      // denormal numbers to 0
};

// A kernel that runs the program, or null if these rows do not do.
std::unique_ptr<ProgramKernel> make_program(OpenDevice& device, const plugrad_program& program,
                                            const ProgramSettings& settings);

}  // namespace plugrad::cpu
