// Runs a launch block by block with poisoned shared memory. Small launches run in several orders, whose results must agree.
#pragma once
#include <tests/simt/device.hpp>

#include <simt/launch.hpp>

namespace simt {

// The calling thread's __shared__ variables.
struct SharedRange {
  char* begin = nullptr;
  size_t bytes = 0;
};
SharedRange shared_range();

// Called with the gate held and the device's memory open. Throws Fault.
void execute(const Kernel& kernel, Device& device, SharedRange shared);

std::string with_kernel(const Kernel& kernel, const std::string& what);

// The reason why the launch is refused; empty if it is not.
struct Refusal {
  cudaError_t error = cudaSuccess;
  std::string why;
};
Refusal refusal(const Kernel& kernel);

// Installs the signal handlers: they log writes, end kernels on invalid accesses, and report faults of host code.
void catch_faults();
// Marks the calling thread as running a kernel.
class KernelThread {
 public:
  KernelThread();
  ~KernelThread();
  KernelThread(const KernelThread&) = delete;
  KernelThread& operator=(const KernelThread&) = delete;
};
// An alternate signal stack for the calling thread.
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
