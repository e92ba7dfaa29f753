// Runs a launch: block after block, with poisoned shared memory, and small ones in several orders that have to agree.
#pragma once
#include <tests/simt/device.hpp>

#include <simt/launch.hpp>

namespace simt {

// Where __shared__ variables lie for the calling thread.
struct SharedRange {
  char* begin = nullptr;
  size_t bytes = 0;
};
SharedRange shared_range();

// With the gate held and the device's memory open. Throws Fault.
void execute(const Kernel& kernel, Device& device, SharedRange shared);

std::string with_kernel(const Kernel& kernel, const std::string& what);

// Why the launch would be refused; empty where it is not.
struct Refusal {
  cudaError_t error = cudaSuccess;
  std::string why;
};
Refusal refusal(const Kernel& kernel);

// The handler of SIGSEGV: notes writes for the log, ends kernels that touch what they may not, names the host's own faults.
void catch_faults();
// The calling thread runs a kernel now.
class KernelThread {
 public:
  KernelThread();
  ~KernelThread();
  KernelThread(const KernelThread&) = delete;
  KernelThread& operator=(const KernelThread&) = delete;
};
// A stack of the calling thread for the handler.
class SignalStack {
 public:
  SignalStack();
  ~SignalStack();
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  std::unique_ptr<char[]> memory_;
};

}  // namespace simt
