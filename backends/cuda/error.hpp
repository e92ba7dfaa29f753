// Translates CUDA's errors into the contract's statuses, and declares scopes around calls into CUDA: the scopes select the
// right device and isolate the calls from unrelated libraries in the process.
#pragma once
#include <cuda_runtime.h>

#include <plugrad/sdk/abi.h>

#include <string>

namespace plugrad::cuda {

// The contract's status for an error of a call: OUT_OF_MEMORY or INTERNAL. Only CudaBackend::check detects a lost device: a
// fixed list of errors would be incomplete, because CUDA adds new errors.
plugrad_status status_of(cudaError_t error);

// For example "out of memory (cudaErrorMemoryAllocation)".
std::string describe(cudaError_t error);

// Throws a BackendError and clears the calling thread's last error, unless `error` is cudaSuccess.
void check(cudaError_t error, const char* what);

// Returns whether this process was forked after CUDA had been started. The first call stores the process id; it precedes
// every call into CUDA.
bool was_forked() noexcept;
inline constexpr const char* kForked =
    "the process was forked after CUDA was started in it, and CUDA does not survive fork: start the process with spawn "
    "instead "
    "(in Python: multiprocessing.set_start_method('spawn')), or use the GPU in the parent alone";

// Selects a device for the calling thread, and restores the previous device in its destructor, because the program may use
// CUDA itself. Selecting a device creates a context on it, which takes memory, so a previous device without a context is not
// restored.
class DeviceScope {
 public:
  explicit DeviceScope(int device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  int before_ = -1;  // -1: the device was already selected
};

// For calls that allocate, query or wait. While any thread of the process captures a graph in the global mode, CUDA refuses
// such calls and invalidates the capture; the relaxed mode declares our calls unrelated to it.
class RelaxedScope {
 public:
  RelaxedScope() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~RelaxedScope() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedScope(const RelaxedScope&) = delete;
  RelaxedScope& operator=(const RelaxedScope&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;  // once constructed: the thread's previous mode
};

// Every entry point except a launch needs both scopes.
class CallScope {
 public:
  explicit CallScope(int device) : device_(device) {}

 private:
  DeviceScope device_;
  RelaxedScope relaxed_;
};

}  // namespace plugrad::cuda
