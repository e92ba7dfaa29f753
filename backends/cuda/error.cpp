#include <backends/cuda/error.hpp>

#include <plugrad/sdk/backend.hpp>

#include <unistd.h>

#include <atomic>

namespace plugrad::cuda {
namespace {

// Returns whether a device's primary context exists. Only the driver API can tell.
bool has_context(int device) {
  using State = int (*)(int device, unsigned* flags, int* active);
  static const State state = [] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result{};
    const char* const name = "cuDevicePrimaryCtxGetState";
#if CUDART_VERSION >= 12050
    const cudaError_t error = cudaGetDriverEntryPointByVersion(name, &found, 7000, cudaEnableDefault, &result);
#else
    const cudaError_t error = cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &result);
#endif
    if (error != cudaSuccess) cudaGetLastError();
    return error == cudaSuccess ? reinterpret_cast<State>(found) : nullptr;
  }();
  unsigned flags = 0;
  int active = 0;
  return state && state(device, &flags, &active) == 0 && active;
}

}  // namespace

plugrad_status status_of(cudaError_t error) {
  if (error == cudaSuccess || error == cudaErrorNotReady) return PLUGRAD_OK;
  return error == cudaErrorMemoryAllocation ? PLUGRAD_OUT_OF_MEMORY : PLUGRAD_INTERNAL;
}

std::string describe(cudaError_t error) {
  return std::string(cudaGetErrorString(error)) + " (" + cudaGetErrorName(error) + ")";
}

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();
  throw BackendError(status_of(error), std::string(what) + ": " + describe(error));
}

bool was_forked() noexcept {
  static std::atomic<pid_t> process{0};
  const pid_t self = getpid();
  pid_t first = 0;
  return !process.compare_exchange_strong(first, self) && first != self;
}

DeviceScope::DeviceScope(int device) {
  int now = -1;
  check(cudaGetDevice(&now), "cudaGetDevice");
  if (now == device) [[likely]]
    return;
  check(cudaSetDevice(device), "cudaSetDevice");
  before_ = now;
}

DeviceScope::~DeviceScope() {
  if (before_ < 0) [[likely]]
    return;
  if (has_context(before_) && cudaSetDevice(before_) != cudaSuccess) cudaGetLastError();
}

}  // namespace plugrad::cuda
