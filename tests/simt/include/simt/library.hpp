// For a library that works on CUDA's streams, as cuBLAS does, and is a shared object of its own: it reaches the emulator, of
// which a process may have several, by the stream that it is given.
#pragma once
#include <simt/launch.hpp>

#include <functional>
#include <string>

namespace simt {

struct Library {
  // Queues work, which runs in stream order while device memory is open to it. What it throws by fail loses the device.
  void (*submit)(cudaStream_t stream, std::function<void()> work);
  [[noreturn]] void (*fail)(const std::string& what);
  // Whether all these bytes are allocated on the stream's device.
  bool (*covers)(cudaStream_t stream, const void* address, size_t bytes);
  // "4 bytes past the end of an allocation of 256 bytes on device 0".
  std::string (*describe)(cudaStream_t stream, const void* address);
};

// What every stream begins with.
struct StreamHead {
  const Library* library;
};
inline const Library& library_of(cudaStream_t stream) { return *reinterpret_cast<const StreamHead*>(stream)->library; }

}  // namespace simt
