// The two places where a CUDA source is not C++: the launch of a kernel, and shared memory whose size the launch gives.
// Everything else in this folder is C++ with CUDA's qualifiers, which an emulator defines away: it stands in for
// cuda_runtime.h, defines PLUGRAD_SIMT and brings both macros of its own. What it has to offer, and all that is used here:
//   devices     cudaGetDeviceCount cudaDriverGetVersion cudaRuntimeGetVersion cudaGetDevice cudaSetDevice
//               cudaGetDeviceProperties (name, uuid, totalGlobalMem, multiProcessorCount, major, minor)
//               cudaDeviceGetPCIBusId cudaDeviceGetAttribute (cudaDevAttrComputeCapabilityMajor) cudaMemGetInfo
//               cudaDeviceCanAccessPeer cudaDeviceEnablePeerAccess
//               cudaGetDriverEntryPointByVersion (cuDevicePrimaryCtxGetState)
//               cudaOccupancyMaxActiveBlocksPerMultiprocessor(int*, kernel, int block, size_t shared_bytes)
//   memory      cudaMalloc cudaFree cudaMallocHost cudaFreeHost cudaMemcpyAsync (HostToDevice, DeviceToHost, DeviceToDevice)
//               cudaMemcpyPeerAsync cudaMemsetAsync
//   streams     cudaStreamCreateWithFlags (cudaStreamNonBlocking) cudaStreamSynchronize
//               cudaStreamQuery cudaStreamWaitEvent(s, e, 0) cudaThreadExchangeStreamCaptureMode
//               cudaEventCreateWithFlags (cudaEventDisableTiming) cudaEventRecord cudaEventQuery cudaEventSynchronize
//   errors      cudaGetLastError cudaGetErrorString cudaGetErrorName; the codes that error.cpp and architecture.cu name
//   in kernels  threadIdx blockIdx blockDim gridDim (x, y, z), dim3, __global__ __device__ __host__ __forceinline__
//               __shared__ __launch_bounds__ __grid_constant__, __syncthreads, __shfl_down_sync __shfl_xor_sync (float,
//               double, int, long long), __threadfence, atomicAdd (float, double, unsigned, unsigned long long), atomicCAS
//               (unsigned, unsigned long long), __float_as_uint __uint_as_float __umul64hi, and from the mathematics of
//               CUDA that C++ lacks: sincospi sincospif
// No kernel reads a vector type of CUDA's: structs with alignas(16) make the same loads.
#pragma once
#include <cuda_runtime.h>

#ifndef PLUGRAD_SIMT
// kernel: a __global__ function, in parentheses where its template arguments have commas.
#define PLUGRAD_LAUNCH(kernel, grid, block, shared_bytes, stream, ...) \
  kernel<<<grid, block, shared_bytes, stream>>>(__VA_ARGS__)
#define PLUGRAD_DYNAMIC_SHARED(type, name) extern __shared__ __align__(16) type name[]
#endif
