// What CUDA answers, in the contract's terms. Two kinds of errors look alike: those of one call, which has no effect, and
// those that kernels leave behind, which every later call answers again: the device is lost then.
#pragma once
#include <cuda_runtime.h>

#include <plugrad/sdk/abi.h>

#include <string>

namespace plugrad::cuda {

// The contract's status for an error of CUDA's: OUT_OF_MEMORY, INTERNAL for an error of the call alone, else DEVICE_LOST.
plugrad_status status_of(cudaError_t error);

// "out of memory (cudaErrorMemoryAllocation)".
std::string describe(cudaError_t error);

// Throws a BackendError, unless all went well; the calling thread's last error is then forgotten.
void check(cudaError_t error, const char* what);

// Selects a device for the calling thread. What was selected before stays so no longer: to select device 0 again would make
// a context on it, and take its memory, for programs that never use it.
void select_device(int device);

}  // namespace plugrad::cuda
