#include <tests/simt/stream.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>

namespace simt {
namespace {
thread_local int selected_index = 0;
thread_local cudaError_t last_error = cudaSuccess;

std::mutex& report_mutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}
std::string& fault_text() {
  static auto* text = new std::string;
  return *text;
}

struct Countdown {
  std::atomic<uint64_t> calls{0}, fatal{0};
};
Countdown& countdown(Injection injection) {
  static auto* all = [] {
    auto* made = new Countdown[3];
    const Settings& s = settings();
    made[int(Injection::malloc_fails)].fatal = s.malloc_fails;
    made[int(Injection::launch_refused)].fatal = s.launch_refused;
    made[int(Injection::launch_faults)].fatal = s.launch_faults;
    return made;
  }();
  return all[int(injection)];
}

cudaError_t without_device() {
  return settings().driver / 1000 < settings().runtime / 1000 ? cudaErrorInsufficientDriver
         : settings().devices                                 ? cudaSuccess
                                                              : cudaErrorNoDevice;
}
}  // namespace

std::vector<Device*>& devices() {
  static auto* all = [] {
    auto* made = new std::vector<Device*>;
    if (without_device() == cudaSuccess)
      for (unsigned i = 0; i < settings().devices; ++i) made->push_back(new Device(i, settings().memory << 20));
    catch_faults();
    return made;
  }();
  return *all;
}

Device& selected() { return *devices()[size_t(selected_index)]; }

cudaError_t noted(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

cudaError_t usable() {
  if (devices().empty()) return noted(without_device());
  return noted(cudaError_t(selected().lost.load()));
}

void report_fault(const std::string& text) {
  const std::lock_guard lock(report_mutex());
  std::fprintf(stderr, "simt: %s\n", text.c_str());
  fault_text() = text;
}
std::string last_fault() {
  const std::lock_guard lock(report_mutex());
  return fault_text();
}
void clear_fault() {
  const std::lock_guard lock(report_mutex());
  fault_text().clear();
}

void inject(Injection injection, uint64_t n) {
  Countdown& one = countdown(injection);
  one.fatal = n ? one.calls + n : 0;
}
bool injected(Injection injection) {
  Countdown& one = countdown(injection);
  return ++one.calls == one.fatal;
}

Pinned& pinned() {
  static auto* all = new Pinned;
  return *all;
}
bool Pinned::covers(const void* address, size_t bytes) {
  const std::lock_guard lock(mutex);
  const auto* at = static_cast<const char*>(address);
  auto next = blocks.upper_bound(at);
  return next != blocks.begin() && (--next, at + bytes <= next->first + next->second);
}

}  // namespace simt

using namespace simt;

namespace {
struct Name {
  cudaError_t error;
  const char *name, *text;
};
#define PLUGRAD_SIMT_NAME(error, text) {error, #error, text}
constexpr Name kNames[] = {
    PLUGRAD_SIMT_NAME(cudaSuccess, "no error"),
    PLUGRAD_SIMT_NAME(cudaErrorInvalidValue, "invalid argument"),
    PLUGRAD_SIMT_NAME(cudaErrorMemoryAllocation, "out of memory"),
    PLUGRAD_SIMT_NAME(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    PLUGRAD_SIMT_NAME(cudaErrorInvalidDevicePointer, "invalid device pointer"),
    PLUGRAD_SIMT_NAME(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    PLUGRAD_SIMT_NAME(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version"),
    PLUGRAD_SIMT_NAME(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    PLUGRAD_SIMT_NAME(cudaErrorInvalidDevice, "invalid device ordinal"),
    PLUGRAD_SIMT_NAME(cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the device"),
    PLUGRAD_SIMT_NAME(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    PLUGRAD_SIMT_NAME(cudaErrorNotReady, "device not ready"),
    PLUGRAD_SIMT_NAME(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    PLUGRAD_SIMT_NAME(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    PLUGRAD_SIMT_NAME(cudaErrorAssert, "device-side assert triggered"),
    PLUGRAD_SIMT_NAME(cudaErrorHostMemoryAlreadyRegistered, "part or all of the requested memory range is already mapped"),
    PLUGRAD_SIMT_NAME(cudaErrorHostMemoryNotRegistered, "pointer does not correspond to a registered memory region"),
    PLUGRAD_SIMT_NAME(cudaErrorMisalignedAddress, "misaligned address"),
    PLUGRAD_SIMT_NAME(cudaErrorLaunchFailure, "unspecified launch failure"),
    PLUGRAD_SIMT_NAME(cudaErrorNotSupported, "operation not supported"),
};
#undef PLUGRAD_SIMT_NAME

const Name* named(cudaError_t error) {
  const auto* found = std::ranges::find_if(kNames, [&](const Name& n) { return n.error == error; });
  return found == std::end(kNames) ? nullptr : found;
}
bool exists(int device) { return device >= 0 && size_t(device) < devices().size(); }
}  // namespace

cudaError_t cudaGetLastError() {
  const cudaError_t error = cudaPeekAtLastError();
  last_error = cudaSuccess;
  return error;
}
// A lost device answers for ever.
cudaError_t cudaPeekAtLastError() {
  const int lost = devices().empty() ? cudaSuccess : selected().lost.load();
  return lost ? cudaError_t(lost) : last_error;
}
const char* cudaGetErrorName(cudaError_t error) {
  const Name* found = named(error);
  return found ? found->name : "unrecognized error code";
}
const char* cudaGetErrorString(cudaError_t error) {
  const Name* found = named(error);
  return found ? found->text : "unrecognized error code";
}

cudaError_t cudaDriverGetVersion(int* version) { return *version = int(settings().driver), cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = int(settings().runtime), cudaSuccess; }

cudaError_t cudaGetDeviceCount(int* count) {
  *count = int(devices().size());
  return noted(without_device());
}

cudaError_t cudaSetDevice(int device) {
  if (devices().empty()) return usable();
  if (!exists(device)) return noted(cudaErrorInvalidDevice);
  selected_index = device;
  return usable();
}
cudaError_t cudaGetDevice(int* device) { return *device = selected_index, cudaSuccess; }

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (devices().empty()) return usable();
  if (!exists(device)) return noted(cudaErrorInvalidDevice);
  *properties = {};
  std::strcpy(properties->name, "SIMT emulator");
  properties->uuid.bytes[15] = char(device);
  properties->totalGlobalMem = devices()[size_t(device)]->memory.limit();
  properties->sharedMemPerBlock = 48 << 10;
  properties->sharedMemPerBlockOptin = 96 << 10;
  properties->regsPerBlock = 65536;
  properties->warpSize = warpSize;
  properties->maxThreadsPerBlock = 1024;
  std::copy_n(std::array{1024, 1024, 64}.begin(), 3, properties->maxThreadsDim);
  std::copy_n(std::array{0x7fffffff, 65535, 65535}.begin(), 3, properties->maxGridSize);
  properties->major = int(settings().capability / 10);
  properties->minor = int(settings().capability % 10);
  properties->multiProcessorCount = 4;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->l2CacheSize = 4 << 20;
  properties->canMapHostMemory = properties->concurrentKernels = properties->unifiedAddressing = 1;
  properties->asyncEngineCount = 2;
  properties->pciBusID = device + 1;
  return usable();
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
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = int(all.sharedMemPerBlockOptin); break;
    case cudaDevAttrHostNumaId: *value = -1; break;
    default: return noted(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  if (!exists(device)) return noted(cudaErrorInvalidDevice);
  if (length < 13) return noted(cudaErrorInvalidValue);
  std::snprintf(id, size_t(length), "0000:%02x:00.0", unsigned(device + 1));
  return usable();
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  if (!exists(device) || !exists(peer)) return noted(cudaErrorInvalidDevice);
  *can = device != peer;
  return usable();
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  if (const cudaError_t error = usable()) return error;
  if (!exists(peer) || unsigned(peer) == selected().index) return noted(cudaErrorInvalidDevice);
  if (flags) return noted(cudaErrorInvalidValue);
  const std::lock_guard lock(selected().mutex);
  return noted(selected().peers.insert(unsigned(peer)).second ? cudaSuccess : cudaErrorPeerAccessAlreadyEnabled);
}

cudaError_t cudaDeviceSynchronize() {
  if (const cudaError_t error = usable()) return error;
  std::vector<cudaStream_t> all{&stream_of(nullptr)};
  {
    const std::lock_guard lock(selected().mutex);
    all.insert(all.end(), selected().streams.begin(), selected().streams.end());
  }
  for (cudaStream_t stream : all) stream->drain();
  return usable();
}

// The device is as new: what it held is gone, and so is its failure.
cudaError_t cudaDeviceReset() {
  if (devices().empty()) return usable();
  cudaDeviceSynchronize();
  Device& device = selected();
  device.memory.release_all();
  const std::lock_guard lock(device.mutex);
  device.peers.clear();
  device.lost = cudaSuccess;
  last_error = cudaSuccess;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total) {
  if (const cudaError_t error = usable()) return error;
  *total = selected().memory.limit();
  *free_bytes = *total - selected().memory.used();
  return cudaSuccess;
}
