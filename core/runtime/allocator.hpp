// The caching allocator of a device: core alone recycles memory.
#pragma once
#include <core/runtime/storage.hpp>
#include <plugrad/runtime/device.hpp>
#include <plugrad/sdk/abi.h>

#include <map>
#include <mutex>
#include <vector>

namespace plugrad {

// [any] throughout. Blocks above 4 KB, and chunks that are cut into smaller ones.
class Allocator {
 public:
  explicit Allocator(DeviceState& device) : device_(device) {}

  // A block of at least `bytes`, with one reference. upload: its first use is by the copy stream, so one that the home is
  // done with is wanted. Throws Error (out_of_memory) after trimming the cache.
  Storage* take(uint64_t bytes, bool upload);
  // The same for a chunk that is cut up and never given back.
  Storage* take_for_ever(uint64_t bytes);
  void give(Storage* block) noexcept;
  // Gives free blocks that nothing in flight uses back to the device; the bytes.
  uint64_t trim();

  MemoryStats stats();
  void reset_peak();
  void set_limit(uint64_t bytes) { limit_ = bytes; }
  std::mutex& mutex() { return mutex_; }

 private:
  Storage* reuse(uint64_t size, bool upload);          // mutex held
  Storage* make(uint64_t size, uint64_t cached_limit);  // mutex held; null: out of memory
  uint64_t trim_to(uint64_t cached);                   // mutex held
  void return_to_device(Storage* block) noexcept;      // mutex held
  plugrad_buffer* buffer(uint64_t size);               // mutex held

  DeviceState& device_;
  std::mutex mutex_;  // makes alloc and free [device-serial]
  std::map<uint64_t, std::vector<Storage*>> free_;  // by size
  std::vector<Storage*> chunks_;  // taken for ever
  MemoryStats stats_{};
  uint64_t limit_ = ~0ull;
};

}  // namespace plugrad
