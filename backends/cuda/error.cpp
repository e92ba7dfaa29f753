#include <backends/cuda/error.hpp>

#include <plugrad/sdk/backend.hpp>

#include <algorithm>
#include <iterator>

namespace plugrad::cuda {
namespace {

// Nothing but the call itself has failed. Of all others one has to assume the worst: CUDA's list grows.
constexpr cudaError_t kOfTheCall[] = {
    cudaErrorInvalidValue,           cudaErrorInvalidConfiguration,  cudaErrorInvalidDevice,
    cudaErrorInvalidMemcpyDirection, cudaErrorInvalidDevicePointer,  cudaErrorInvalidDeviceFunction,
    cudaErrorNoKernelImageForDevice, cudaErrorInvalidResourceHandle, cudaErrorLaunchOutOfResources,
    cudaErrorNotSupported,
};

}  // namespace

plugrad_status status_of(cudaError_t error) {
  if (error == cudaSuccess || error == cudaErrorNotReady) return PLUGRAD_OK;
  if (error == cudaErrorMemoryAllocation) return PLUGRAD_OUT_OF_MEMORY;
  return std::ranges::count(kOfTheCall, error) ? PLUGRAD_INTERNAL : PLUGRAD_DEVICE_LOST;
}

std::string describe(cudaError_t error) {
  return std::string(cudaGetErrorString(error)) + " (" + cudaGetErrorName(error) + ")";
}

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();
  const plugrad_status status = status_of(error);
  std::string message = std::string(what) + ": " + describe(error);
  if (status == PLUGRAD_DEVICE_LOST)
    message += "; the device is lost for this process. PLUGRAD_SYNC=1 reports a failure at the op itself";
  throw BackendError(status, message);
}

void select_device(int device) {
  int now = -1;
  check(cudaGetDevice(&now), "cudaGetDevice");
  if (now != device) check(cudaSetDevice(device), "cudaSetDevice");
}

}  // namespace plugrad::cuda
