// Replaces CUDA's driver: the functions that the communicator nccl opens, by an emulator of their own.
#include <cuda_runtime.h>
#include <simt/library.hpp>

#include <atomic>
#include <cstdint>
#include <memory>

#define CHECKED extern "C" __attribute__((visibility("default")))

CHECKED int cuInit(unsigned flags) { return flags ? cudaErrorInvalidValue : cudaSuccess; }
CHECKED int cuDeviceGetCount(int* count) { return cudaGetDeviceCount(count); }
CHECKED int cuDeviceGet(int* device, int index) {
  *device = index;
  int count = 0;
  cudaGetDeviceCount(&count);
  return index >= 0 && index < count ? cudaSuccess : cudaErrorInvalidDevice;
}
CHECKED int cuDevicePrimaryCtxRetain(void** context, int device) {
  *context = reinterpret_cast<void*>(static_cast<intptr_t>(device) + 1);
  return cudaSuccess;
}
CHECKED int cuCtxSetCurrent(void* context) {
  return cudaSetDevice(static_cast<int>(reinterpret_cast<intptr_t>(context)) - 1);
}
CHECKED int cuStreamCreate(cudaStream_t* stream, unsigned flags) { return cudaStreamCreateWithFlags(stream, flags); }
CHECKED int cuStreamDestroy_v2(cudaStream_t stream) { return cudaStreamDestroy(stream); }
CHECKED int cuMemAlloc_v2(unsigned long long* address, size_t bytes) {
  void* memory = nullptr;
  const int result = cudaMalloc(&memory, bytes);
  *address = reinterpret_cast<uintptr_t>(memory);
  return result;
}
CHECKED int cuMemFree_v2(unsigned long long address) { return cudaFree(reinterpret_cast<void*>(address)); }
CHECKED int cuMemAllocHost_v2(void** address, size_t bytes) { return cudaHostAlloc(address, bytes, 0); }
CHECKED int cuMemFreeHost(void* address) { return cudaFreeHost(address); }
CHECKED int cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, size_t bytes, cudaStream_t stream) {
  return cudaMemcpyAsync(reinterpret_cast<void*>(to), from, bytes, cudaMemcpyHostToDevice, stream);
}
CHECKED int cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, size_t bytes, cudaStream_t stream) {
  return cudaMemcpyAsync(to, reinterpret_cast<const void*>(from), bytes, cudaMemcpyDeviceToHost, stream);
}
// An event of its own, because the stream may be of another emulator: of the device's plugin.
struct DriverEvent {
  std::shared_ptr<std::atomic<bool>> reached = std::make_shared<std::atomic<bool>>(true);
};
CHECKED int cuEventCreate(DriverEvent** event, unsigned) {
  *event = new DriverEvent;
  return cudaSuccess;
}
CHECKED int cuEventRecord(DriverEvent* event, cudaStream_t stream) {
  const auto reached = event->reached = std::make_shared<std::atomic<bool>>(false);
  simt::library_of(stream).wait(stream, [reached] { *reached = true; });
  return cudaSuccess;
}
CHECKED int cuEventQuery(DriverEvent* event) { return *event->reached ? cudaSuccess : cudaErrorNotReady; }
CHECKED int cuEventDestroy_v2(DriverEvent* event) {
  delete event;
  return cudaSuccess;
}
CHECKED int cuGetErrorString(int error, const char** text) {
  *text = cudaGetErrorString(static_cast<cudaError_t>(error));
  return cudaSuccess;
}
