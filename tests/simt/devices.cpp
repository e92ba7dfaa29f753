#include <tests/simt/stream.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>

namespace simt {
namespace {
thread_local int selected_index = 0;
}  // namespace

cudaError_t without_device() {
  return settings().driver / 1000 < settings().runtime / 1000 ? cudaErrorInsufficientDriver
         : settings().devices                                 ? cudaSuccess
                                                              : cudaErrorNoDevice;
}

std::vector<Device*>& devices() {
  static auto* all = [] {
    auto* made = new std::vector<Device*>;
    if (without_device() == cudaSuccess)
      for (unsigned i = 0; i < settings().devices; ++i) made->push_back(new Device(i, settings().memory << 20));
    return made;
  }();
  return *all;
}

Device& selected() { return *devices()[static_cast<size_t>(selected_index)]; }

Pinned& pinned() {
  static auto* all = new Pinned;
  return *all;
}
bool has_context(int device) { return devices()[static_cast<size_t>(device)]->has_context; }

bool Pinned::covers(const void* address, size_t bytes) {
  const std::lock_guard lock(mutex);
  const auto* at = static_cast<const char*>(address);
  auto next = blocks.upper_bound(at);
  return next != blocks.begin() && (--next, at + bytes <= next->first + next->second);
}

}  // namespace simt

using namespace simt;

namespace {
bool exists(int device) { return device >= 0 && static_cast<size_t>(device) < devices().size(); }
}  // namespace

cudaError_t cudaDriverGetVersion(int* version) { return *version = static_cast<int>(settings().driver), cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = static_cast<int>(settings().runtime), cudaSuccess; }

cudaError_t cudaGetDeviceCount(int* count) {
  *count = static_cast<int>(devices().size());
  return devices().empty() ? noted(without_device()) : present();
}

cudaError_t cudaSetDevice(int device) {
  if (devices().empty()) return usable();
  if (!exists(device)) return noted(cudaErrorInvalidDevice);
  selected_index = device;
  return usable();
}
cudaError_t cudaGetDevice(int* device) { return *device = selected_index, cudaSuccess; }

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (devices().empty()) return present();
  if (!exists(device)) return noted(cudaErrorInvalidDevice);
  *properties = {};
  std::strcpy(properties->name, "SIMT emulator");
  properties->uuid.bytes[15] = static_cast<char>(device);
  properties->totalGlobalMem = devices()[static_cast<size_t>(device)]->memory.limit();
  properties->sharedMemPerBlock = 48 << 10;
  properties->sharedMemPerBlockOptin = 96 << 10;
  properties->regsPerBlock = 65536;
  properties->warpSize = warpSize;
  properties->maxThreadsPerBlock = 1024;
  std::copy_n(std::array{1024, 1024, 64}.begin(), 3, properties->maxThreadsDim);
  std::copy_n(std::array{0x7fffffff, 65535, 65535}.begin(), 3, properties->maxGridSize);
  properties->major = static_cast<int>(settings().capability / 10);
  properties->minor = static_cast<int>(settings().capability % 10);
  properties->multiProcessorCount = static_cast<int>(settings().multiprocessors);
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->l2CacheSize = 4 << 20;
  properties->canMapHostMemory = properties->concurrentKernels = properties->unifiedAddressing = 1;
  properties->asyncEngineCount = 2;
  properties->pciBusID = device + 1;
  return present();
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp all{};
  if (const cudaError_t error = cudaGetDeviceProperties(&all, device)) return error;
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: *value = all.maxThreadsPerBlock; break;
    case cudaDevAttrWarpSize: *value = all.warpSize; break;
    case cudaDevAttrMultiProcessorCount: *value = all.multiProcessorCount; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = all.maxThreadsPerMultiProcessor; break;
    case cudaDevAttrComputeCapabilityMajor: *value = all.major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = all.minor; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = static_cast<int>(all.sharedMemPerBlockOptin); break;
    case cudaDevAttrHostNumaId: *value = -1; break;
    default: return noted(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  if (!exists(device)) return noted(cudaErrorInvalidDevice);
  if (length < 13) return noted(cudaErrorInvalidValue);
  std::snprintf(id, static_cast<size_t>(length), "0000:%02x:00.0", static_cast<unsigned>(device + 1));
  return present();
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  if (!exists(device) || !exists(peer)) return noted(cudaErrorInvalidDevice);
  *can = device != peer;
  return present();
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  if (const cudaError_t error = usable()) return error;
  if (!exists(peer) || static_cast<unsigned>(peer) == selected().index) return noted(cudaErrorInvalidDevice);
  if (flags) return noted(cudaErrorInvalidValue);
  const std::lock_guard lock(selected().mutex);
  return noted(selected().peers.insert(static_cast<unsigned>(peer)).second ? cudaSuccess
                                                                           : cudaErrorPeerAccessAlreadyEnabled);
}

namespace {
// The driver's cuDevicePrimaryCtxGetState: returns whether a device has a context, and creates none.
int primary_context_state(int device, unsigned* flags, int* active) {
  if (!exists(device)) return cudaErrorInvalidDevice;
  *flags = 0;
  *active = devices()[static_cast<size_t>(device)]->has_context;
  return cudaSuccess;
}
}  // namespace

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  const bool known = !std::strcmp(name, "cuDevicePrimaryCtxGetState");
  *function = known ? reinterpret_cast<void*>(&primary_context_state) : nullptr;
  *result = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  if (const cudaError_t error = usable_beside_captures()) return error;
  std::vector<cudaStream_t> all{&stream_of(nullptr)};
  {
    const std::lock_guard lock(selected().mutex);
    all.insert(all.end(), selected().streams.begin(), selected().streams.end());
  }
  for (cudaStream_t stream : all) stream->drain();
  return usable();
}

// Resets the device: frees its memory and clears its failure.
cudaError_t cudaDeviceReset() {
  if (devices().empty()) return usable();
  cudaDeviceSynchronize();
  Device& device = selected();
  device.memory.release_all();
  const std::lock_guard lock(device.mutex);
  device.peers.clear();
  device.has_context = false;
  device.lost = cudaSuccess;
  forget_error();
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total) {
  if (const cudaError_t error = usable()) return error;
  *total = selected().memory.limit();
  *free_bytes = *total - selected().memory.used();
  return cudaSuccess;
}
