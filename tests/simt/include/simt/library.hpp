// For a library in its own shared object that works on CUDA's streams, as cuBLAS does. A process may have several emulators,
// so the library finds its emulator through the stream that it receives.
#pragma once
#include <simt/launch.hpp>

#include <functional>
#include <string>

namespace simt {

struct Library {
  // Queues work, which runs in stream order with device memory accessible. If the work calls fail, the device is lost.
  void (*submit)(cudaStream_t stream, std::function<void()> work);
  [[noreturn]] void (*fail)(const std::string& what);
  // Returns whether all these bytes are allocated on the stream's device.
  bool (*covers)(cudaStream_t stream, const void* address, size_t bytes);
  // For example "4 bytes past the end of an allocation of 256 bytes on device 0".
  std::string (*describe)(cudaStream_t stream, const void* address);
  // Queues a wait for something outside, without device memory: the work of other streams goes on meanwhile.
  void (*wait)(cudaStream_t stream, std::function<void()> until);
};

// The first member of every stream.
struct StreamHead {
  const Library* library;
};
inline const Library& library_of(cudaStream_t stream) { return *reinterpret_cast<const StreamHead*>(stream)->library; }

}  // namespace simt
