// CUDA's functions for memory and copies.
#include <tests/simt/stream.hpp>

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <string_view>

using namespace simt;

namespace {
Device* owner(const void* address) {
  for (Device* device : devices())
    if (device->memory.owns(address)) return device;
  return nullptr;
}

struct Copy {
  char* to;
  const char* from;
  size_t to_pitch, from_pitch, width, height;

  size_t to_bytes() const { return to_pitch * (height - 1) + width; }
  size_t from_bytes() const { return from_pitch * (height - 1) + width; }
  // A digest of the source bytes.
  size_t digest() const {
    size_t all = 0;
    for (size_t row = 0; row < height; ++row)
      all = all * 31 + std::hash<std::string_view>()({from + row * from_pitch, width});
    return all;
  }
  void run() const {
    for (size_t row = 0; row < height; ++row) std::memcpy(to + row * to_pitch, from + row * from_pitch, width);
  }
};

bool fits(cudaMemcpyKind kind, bool to_device, bool from_device) {
  switch (kind) {
    case cudaMemcpyHostToHost: return !to_device && !from_device;
    case cudaMemcpyHostToDevice: return to_device && !from_device;
    case cudaMemcpyDeviceToHost: return !to_device && from_device;
    case cudaMemcpyDeviceToDevice: return to_device && from_device;
    default: return true;
  }
}

// Fails if memory that was allocated when the copy was queued is freed before it runs.
void require_live(const Device* device, const void* address, size_t bytes, const char* what) {
  if (device && !device->memory.covers(address, bytes))
    throw Fault(cudaErrorIllegalAddress, std::string("a copy ") + what + " " + device->memory.describe(address));
}

cudaError_t copy(const Copy& c, cudaMemcpyKind kind, cudaStream_t stream) {
  if (const cudaError_t error = usable()) return error;
  if (!c.width || !c.height) return cudaSuccess;
  Device *to = owner(c.to), *from = owner(c.from);
  if (!fits(kind, to, from))
    return noted(kind > cudaMemcpyDefault ? cudaErrorInvalidMemcpyDirection : cudaErrorInvalidValue);
  if (c.width > c.to_pitch || c.width > c.from_pitch || (to && !to->memory.covers(c.to, c.to_bytes())) ||
      (from && !from->memory.covers(c.from, c.from_bytes())))
    return noted(cudaErrorInvalidValue);
  CUstream_st& queue = stream_of(stream);
  const bool from_pinned = !from && pinned().covers(c.from, c.from_bytes());
  const size_t queued = from_pinned ? c.digest() : 0;
  const bool pageable = (!to && !pinned().covers(c.to, c.to_bytes())) || (!from && !from_pinned);
  queue.push({[=](SharedRange) {
                require_live(to, c.to, c.to_bytes(), "writes");
                require_live(from, c.from, c.from_bytes(), "reads");
                if (from_pinned && c.digest() != queued)
                  throw Fault(cudaErrorLaunchFailure, "the source of a copy changed after the copy was queued");
                c.run();
              },
              to     ? to
              : from ? from
                     : &queue.device,
              from});
  if (pageable) queue.drain();  // CUDA's driver also waits, at least for uploads
  return usable();
}

cudaError_t set(char* to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream) {
  if (const cudaError_t error = usable()) return error;
  if (!width || !height) return cudaSuccess;
  Device* device = owner(to);
  const size_t bytes = pitch * (height - 1) + width;
  if (width > pitch || !device || !device->memory.covers(to, bytes)) return noted(cudaErrorInvalidValue);
  stream_of(stream).push({[=](SharedRange) {
                            require_live(device, to, bytes, "writes");
                            for (size_t row = 0; row < height; ++row) std::memset(to + row * pitch, value, width);
                          },
                          device});
  return cudaSuccess;
}

cudaError_t finish(cudaError_t error) {
  if (error) return error;
  if (const cudaError_t unsafe = usable_beside_captures()) return unsafe;
  stream_of(nullptr).drain();
  return usable();
}
}  // namespace

cudaError_t cudaMalloc(void** address, size_t bytes) {
  if (const cudaError_t error = usable_beside_captures()) return error;
  *address = nullptr;
  if (!bytes) return cudaSuccess;
  if (!injected(Injection::malloc_fails)) *address = selected().memory.allocate(bytes);
  return noted(*address ? cudaSuccess : cudaErrorMemoryAllocation);
}

// Waits for the device, as CUDA does, so that no work in flight loses its memory.
cudaError_t cudaFree(void* address) {
  if (!address) return usable();
  if (const cudaError_t error = usable_beside_captures()) return error;
  Device* device = owner(address);
  if (!device) return noted(devices().empty() ? usable() : cudaErrorInvalidValue);
  std::vector<cudaStream_t> all;
  {
    const std::lock_guard lock(device->mutex);
    all = device->streams;
    if (device->null_stream) all.push_back(device->null_stream);
  }
  for (cudaStream_t stream : all) stream->drain();
  return device->memory.release(address) ? usable() : noted(cudaErrorInvalidValue);
}

cudaError_t cudaMallocHost(void** address, size_t bytes, unsigned flags) { return cudaHostAlloc(address, bytes, flags); }

cudaError_t cudaHostAlloc(void** address, size_t bytes, unsigned) {
  if (const cudaError_t error = usable_beside_captures()) return error;
  *address = injected(Injection::malloc_fails) ? nullptr : std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
  if (!*address) return noted(cudaErrorMemoryAllocation);
  std::memset(*address, 0xff, bytes);
  const std::lock_guard lock(pinned().mutex);
  pinned().blocks[static_cast<const char*>(*address)] = bytes;
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* address) {
  if (!address) return usable();
  if (const cudaError_t error = cudaDeviceSynchronize()) return error;
  {
    const std::lock_guard lock(pinned().mutex);
    if (!pinned().blocks.erase(static_cast<const char*>(address))) return noted(cudaErrorInvalidValue);
  }
  std::free(address);
  return usable();
}

cudaError_t cudaHostRegister(void* address, size_t bytes, unsigned) {
  if (const cudaError_t error = usable_beside_captures()) return error;
  if (!address || !bytes) return noted(cudaErrorInvalidValue);
  if (pinned().covers(address, 1)) return noted(cudaErrorHostMemoryAlreadyRegistered);
  const std::lock_guard lock(pinned().mutex);
  pinned().blocks[static_cast<const char*>(address)] = bytes;
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void* address) {
  if (const cudaError_t error = usable()) return error;
  const std::lock_guard lock(pinned().mutex);
  return noted(pinned().blocks.erase(static_cast<const char*>(address)) ? cudaSuccess : cudaErrorHostMemoryNotRegistered);
}
cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  if (const cudaError_t error = usable()) return error;
  *device = host;
  return noted(pinned().covers(host, 1) ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return copy({static_cast<char*>(to), static_cast<const char*>(from), bytes, bytes, bytes, 1}, kind, stream);
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return finish(cudaMemcpyAsync(to, from, bytes, kind, nullptr));
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream) {
  return copy({static_cast<char*>(to), static_cast<const char*>(from), to_pitch, from_pitch, width, height}, kind, stream);
}
cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t bytes,
                                cudaStream_t stream) {
  if (const cudaError_t error = usable()) return error;
  const Device *source = owner(from), *target = owner(to);
  if (!source || !target || static_cast<int>(source->index) != from_device || static_cast<int>(target->index) != to_device)
    return noted(cudaErrorInvalidValue);
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}

cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream) {
  return set(static_cast<char*>(to), pitch, value, width, height, stream);
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return set(static_cast<char*>(to), bytes, value, bytes, 1, stream);
}
cudaError_t cudaMemset(void* to, int value, size_t bytes) { return finish(cudaMemsetAsync(to, value, bytes, nullptr)); }
