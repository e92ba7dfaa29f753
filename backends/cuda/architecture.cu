#include <backends/cuda/architecture.hpp>
#include <backends/cuda/error.hpp>
#include <backends/cuda/launch.hpp>

#include <plugrad/sdk/backend.hpp>

#include <algorithm>

// The plugin's target architectures, as the build spells them.
#ifndef PLUGRAD_CUDA_ARCHITECTURES
#define PLUGRAD_CUDA_ARCHITECTURES "unknown"
#endif

namespace plugrad::cuda {
namespace {

__global__ void trial_kernel(int* nothing) {
  if (nothing) *nothing = 0;
}

// CUDA's errors for missing code, and for code that CUDA cannot compile.
constexpr cudaError_t kNoCode[] = {
    cudaErrorNoKernelImageForDevice, cudaErrorInvalidDeviceFunction, cudaErrorInvalidKernelImage, cudaErrorInvalidPtx,
    cudaErrorUnsupportedPtxVersion,  cudaErrorJitCompilerNotFound,
};

}  // namespace

// The occupancy query loads the kernel's code, compiled from PTX if the device is newer than every architecture.
int demand_architecture(int device) {
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  int blocks = 0;
  const cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, trial_kernel, 256, 0);
  if (error == cudaSuccess) return properties.multiProcessorCount;
  cudaGetLastError();
  if (!std::ranges::count(kNoCode, error)) check(error, "opening the device");
  throw BackendError(PLUGRAD_UNSUPPORTED, std::string(properties.name) + " has compute capability " +
                                              std::to_string(properties.major) + "." + std::to_string(properties.minor) +
                                              ", and this plugin has code for " PLUGRAD_CUDA_ARCHITECTURES " only (" +
                                              describe(error) + "); build the plugin for it");
}

std::string architecture_name(int device) {
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return "sm_" + std::to_string(properties.major) + std::to_string(properties.minor);
}

}  // namespace plugrad::cuda
