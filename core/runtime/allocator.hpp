// The caching allocator of a device: core alone recycles memory.
#pragma once
#include <core/runtime/blocks.hpp>
#include <core/runtime/storage.hpp>
#include <plugrad/runtime/device.hpp>
#include <plugrad/sdk/abi.h>

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

namespace plugrad {

// [any] throughout. Blocks above 4 KB, and chunks that are cut into smaller ones: see blocks.hpp for how segments are cut.
//
// Requests below 1 MiB share segments of 2 MiB, those up to 10 MiB share segments of 20 MiB, and larger ones have a segment
// each, rounded up to 2 MiB: devices hand out pages of 2 MiB, a call of theirs costs as much as hundreds of small ops, and
// small blocks that live long would else keep large ones apart. Where memory is short a segment is as large as its block.
class Allocator {
 public:
  explicit Allocator(DeviceState& device) : device_(device) {}

  // A block of at least `bytes`, with one reference. upload: its first use is by the copy stream, so one that the home is
  // done with is wanted. Asks the plugin what is over only where a block that fits may still be in use. Throws Error
  // (out_of_memory), after waiting for what is in flight and after giving back segments that nobody uses.
  Storage* take(uint64_t bytes, bool upload);
  // The same for a chunk of small blocks, which is never given back.
  Storage* take_chunk(uint64_t bytes);
  void give(Storage* block) noexcept;
  // Gives all segments that nobody uses back to the device; returns their bytes.
  uint64_t trim();

  // Small blocks are counted by their chunks here: small_blocks.hpp knows which of them are free.
  MemoryStats stats();
  void reset_peak();
  void set_limit(uint64_t bytes) { limit_ = bytes; }
  std::mutex& mutex() { return mutex_; }

 private:
  // All with the mutex held.
  BlockPool& pool_for(uint64_t size) { return pools_[0].serves(size) ? pools_[0] : pools_[1]; }
  Block* find(BlockPool& pool, uint64_t size, bool upload);
  Block* find_anywhere(uint64_t size, bool upload);
  Block* extend(BlockPool& pool, uint64_t size);
  Block* make_segment(BlockPool& pool, uint64_t bytes);
  Storage* hand_out(Block& block, uint64_t size);
  uint64_t release(uint64_t bytes, size_t segments = SIZE_MAX);
  std::vector<Block*> unused_segments();
  void give_back(Block& whole) noexcept;
  void poll() const;
  bool own_memory() const;  // host memory that the plugin leaves to the core
  plugrad_buffer* buffer(uint64_t size);
  [[noreturn]] void throw_full(uint64_t bytes) const;

  DeviceState& device_;
  std::mutex mutex_;  // makes alloc and free [device-serial]
  std::array<BlockPool, 2> pools_{BlockPool(2 << 20, (1 << 20) - 1), BlockPool(20 << 20, ~0ull)};
  std::vector<Storage*> chunks_;  // reachable, for leak checkers
  MemoryStats stats_{};
  uint64_t limit_ = ~0ull;
};

}  // namespace plugrad
