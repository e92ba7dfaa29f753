// Copies between host memory and existing tensors, also asynchronous ones. A copy into a tensor is a write in place, with
// the rules of Tensor::copy_.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <cstdint>
#include <memory>

namespace plugrad {

struct Pinned;

// Copies `to.count()` row-major elements of to's dtype from host memory into a tensor with any strides. The caller may reuse
// the host's memory on return. Bytes of a bool other than 0 become 1.
PLUGRAD_API void copy_from_host(const Tensor& to, const void* elements);

// Host memory for asynchronous copies. Without pinned memory, or without streams, it is plain memory and the copies are
// synchronous. Not thread-safe.
class PLUGRAD_API PinnedMemory {
 public:
  // Throws Error (out_of_memory).
  PinnedMemory(Device device, uint64_t bytes);
  PinnedMemory(PinnedMemory&&) noexcept;
  PinnedMemory& operator=(PinnedMemory&&) noexcept;
  ~PinnedMemory();  // waits for the copies

  void* data() const;
  uint64_t bytes() const;
  Device device() const;
  // Waits until the host may read and write the bytes. Throws Error if the source of a copy to them failed.
  void wait();

 private:
  friend void copy_from_host(const Tensor& to, PinnedMemory& from, uint64_t byte_offset);
  friend void copy_to_host(const Tensor& from, PinnedMemory& to, uint64_t byte_offset);
  std::unique_ptr<Pinned> pinned_;
};

// As copy_from_host() above, from a place in pinned memory: returns before the copy is done. from.wait() tells when the host
// may write the bytes; ops on `to` wait by themselves. Throws Error (invalid) if the memory is too small or of another
// device's plugin.
PLUGRAD_API void copy_from_host(const Tensor& to, PinnedMemory& from, uint64_t byte_offset = 0);
// Copies all elements, row-major, to a place in pinned memory: returns before the copy is done. to.wait() tells when the
// host may read the bytes. Throws as above.
PLUGRAD_API void copy_to_host(const Tensor& from, PinnedMemory& to, uint64_t byte_offset = 0);

}  // namespace plugrad
