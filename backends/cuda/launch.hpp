// The two places where a CUDA source is not C++: the launch of a kernel, and shared memory whose size the launch gives.
// Everything else in this folder is C++ with CUDA's qualifiers, which an emulator defines as empty. The emulator replaces
// cuda_runtime.h and defines PLUGRAD_SIMT and both macros. An emulator has to provide all of the folder's uses of CUDA:
//   devices     cudaGetDeviceCount cudaDriverGetVersion cudaRuntimeGetVersion cudaGetDevice cudaSetDevice
//               cudaGetDeviceProperties (name, uuid, totalGlobalMem, multiProcessorCount, major, minor)
//               cudaDeviceGetPCIBusId cudaDeviceGetAttribute (cudaDevAttrComputeCapabilityMajor) cudaMemGetInfo
//               cudaDeviceCanAccessPeer cudaDeviceEnablePeerAccess
//               cudaGetDriverEntryPointByVersion (cuDevicePrimaryCtxGetState)
//               cudaOccupancyMaxActiveBlocksPerMultiprocessor(int*, kernel, int block, size_t shared_bytes)
//   memory      cudaMalloc cudaFree cudaMallocHost cudaFreeHost cudaMemcpyAsync (HostToDevice, DeviceToHost, DeviceToDevice)
//               cudaMemcpyPeerAsync cudaMemsetAsync
//   streams     cudaStreamCreateWithFlags (cudaStreamNonBlocking) cudaStreamSynchronize cudaStreamQuery cudaStreamWaitEvent
//               cudaThreadExchangeStreamCaptureMode cudaEventCreateWithFlags (cudaEventDisableTiming, cudaEventBlockingSync)
//               cudaEventDestroy cudaEventRecord cudaEventQuery cudaEventSynchronize
//   graphs      cudaStreamBeginCapture (cudaStreamCaptureModeThreadLocal) cudaStreamEndCapture cudaGraphInstantiate
//               cudaGraphExecUpdate cudaGraphLaunch cudaGraphDestroy cudaGraphExecDestroy
//   programs    cudaLibraryLoadData cudaLibraryGetKernel cudaLaunchKernel (of a cudaKernel_t)
//   errors      cudaGetLastError cudaGetErrorString cudaGetErrorName; the codes named in error.cpp and architecture.cu
//   in kernels  threadIdx.x blockIdx.x gridDim.x, __global__ __device__ __host__ __forceinline__
//               __shared__ __launch_bounds__ __grid_constant__, __syncthreads, __shfl_xor_sync (int),
//               __threadfence, atomicAdd (float, double, unsigned, unsigned long long), atomicCAS
//               (unsigned, unsigned long long), __float_as_uint __uint_as_float __umul64hi, and from the mathematics of
//               CUDA that C++ lacks: sincospi sincospif
// No kernel uses CUDA's vector types: structs with alignas(16) compile to the same loads.
#pragma once
#include <cuda_runtime.h>

#ifndef PLUGRAD_SIMT
// kernel: a __global__ function, in parentheses where its template arguments have commas.
#define PLUGRAD_LAUNCH(kernel, grid, block, shared_bytes, stream, ...) \
  kernel<<<grid, block, shared_bytes, stream>>>(__VA_ARGS__)
#define PLUGRAD_DYNAMIC_SHARED(type, name) extern __shared__ __align__(16) type name[]
#endif
