// CUDA's errors in the contract's terms, and what every call into CUDA needs around it: the right device, and independence
// of what other libraries of the process do.
#pragma once
#include <cuda_runtime.h>

#include <plugrad/sdk/abi.h>

#include <string>

namespace plugrad::cuda {

// The contract's status for an error of one call: OUT_OF_MEMORY or INTERNAL. CudaBackend::check finds out whether the device
// is lost: no list of errors says so, because CUDA's list grows.
plugrad_status status_of(cudaError_t error);

// "out of memory (cudaErrorMemoryAllocation)".
std::string describe(cudaError_t error);

// Throws a BackendError unless error is cudaSuccess, and clears the calling thread's last error.
void check(cudaError_t error, const char* what);

// Whether another process started CUDA, and this one was forked from it. The first call, which comes before every other one
// of CUDA's, remembers the process.
bool was_forked() noexcept;
inline constexpr const char* kForked =
    "the process was forked after CUDA was started in it, and CUDA does not survive fork: start the process with spawn "
    "instead "
    "(in Python: multiprocessing.set_start_method('spawn')), or use the GPU in the parent alone";

// Selects a device for the calling thread, and selects the previous one again at its end: a program that uses CUDA beside us
// keeps its current device. Selecting a device makes a context on it, which takes memory, so a previous device that nobody
// in the process uses is not selected again.
class DeviceScope {
 public:
  explicit DeviceScope(int device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  int before_ = -1;  // -1: the device was selected already
};

// For calls that allocate, query or wait. CUDA refuses those, and breaks the capture, while any thread of the process
// captures a graph in the global mode; the relaxed mode says that ours have nothing to do with the capture.
class RelaxedScope {
 public:
  RelaxedScope() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~RelaxedScope() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedScope(const RelaxedScope&) = delete;
  RelaxedScope& operator=(const RelaxedScope&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;  // the thread's mode before, once constructed
};

// What every entry point but a launch needs.
class CallScope {
 public:
  explicit CallScope(int device) : device_(device) {}

 private:
  DeviceScope device_;
  RelaxedScope relaxed_;
};

}  // namespace plugrad::cuda
