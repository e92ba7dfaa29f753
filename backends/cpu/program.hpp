// Programs (plugrad/sdk/program.h) of this backend: run by tiles, so that values that only the program needs stay in the
// caches. A tile goes through all steps before the next one.
#pragma once
#include <backends/cpu/rows.hpp>
#include <plugrad/sdk/program.hpp>

#include <memory>
#include <mutex>
#include <vector>

namespace plugrad::cpu {

// The kernels of all programs of a device.
class ProgramKernels {
 public:
  // rows: the device's kernels, without wrappers.
  // vector_bytes: of the instruction set, for machine code; 0: none is made.
  ProgramKernels(const RowList& rows, int threads, int vector_bytes, bool flushes)
      : rows_(rows), threads_(threads), vector_bytes_(vector_bytes), flushes_(flushes) {}
  const plugrad_kernel* find(OpenDevice& device, const plugrad_program& program);

 private:
  const RowList& rows_;
  const int threads_, vector_bytes_;
  const bool flushes_;  // denormal numbers to 0
  std::mutex mutex_;
  std::vector<std::unique_ptr<ProgramKernel>> kernels_;
};

}  // namespace plugrad::cpu
