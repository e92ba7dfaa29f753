// Programs of the reference backend: each instruction is a call of its own kernel, over values in the workspace.
#pragma once
#include <plugrad/sdk/program.hpp>

#include <deque>
#include <memory>
#include <mutex>

namespace plugrad::reference {

// The kernels of all programs of a device.
class ProgramKernels {
 public:
  const plugrad_kernel* find(OpenDevice& device, const plugrad_program& program);

 private:
  std::mutex mutex_;
  std::deque<std::unique_ptr<ProgramKernel>> kernels_;
};

}  // namespace plugrad::reference
