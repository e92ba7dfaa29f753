// The caching allocator of a device. Only the core recycles memory; plugins do not.
#pragma once
#include <plugrad/sdk/abi.h>
#include <core/runtime/memory/blocks.hpp>
#include <core/runtime/memory/storage.hpp>
#include <plugrad/runtime/device.hpp>

#include <array>
#include <cstdint>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace plugrad {

struct HostRange {
  uintptr_t address;
  uint64_t bytes;
};

// [any] throughout. Allocates blocks above 4 KB, and the chunks of smaller blocks. blocks.hpp cuts segments.
//
// Requests below 1 MiB share segments of 2 MiB, requests up to 10 MiB share segments of 20 MiB, and each larger request has
// its own segment, rounded up to 2 MiB. Devices allocate in pages of 2 MiB, a device's allocation costs as much as hundreds
// of small ops, and long-lived small blocks would fragment the memory of large blocks. If memory is short, a segment equals
// its block.
class Allocator {
 public:
  explicit Allocator(DeviceState& device) : device_(device) {}

  // Returns a block of at least `bytes` with one reference. upload: the copy stream uses it first, so the home must have
  // finished with it. Polls the plugin only if a fitting block may still be in use. Throws Error (out_of_memory), but only
  // after it has waited for work in flight and released unused segments.
  Storage* take(uint64_t bytes, uint32_t opcode, bool upload);
  // Returns adjacent blocks of these sizes in a single buffer, each of block_bytes. The memory comes from the device's free
  // blocks or, if may_extend, from a new segment. Returns an empty vector without such memory.
  std::vector<Ref<Storage>> take_row(std::span<const uint64_t> bytes, bool may_extend);
  // The same as take for a chunk of small blocks. The chunk is never released.
  Storage* take_chunk(uint64_t bytes, uint32_t opcode);
  void give(Storage* block) noexcept;
  // Returns all unused segments to the device; returns their bytes.
  uint64_t trim();

  // Counts small blocks by their chunks; small_blocks.hpp knows the free small blocks.
  MemoryStats stats();
  void reset_peak();
  // The active bytes, and the most since the last call, for profilers.
  std::pair<uint64_t, uint64_t> sample();
  void set_limit(uint64_t bytes) { limit_ = bytes; }
  std::mutex& mutex() { return mutex_; }

 private:
  // The caller of the functions below holds the mutex.
  BlockPool& pool_for(uint64_t size) { return pools_[0].serves(size) ? pools_[0] : pools_[1]; }
  Block* find(BlockPool& pool, uint64_t size, bool upload);
  Block* find_anywhere(uint64_t size, bool upload);
  Block* extend(BlockPool& pool, uint64_t size);
  Block* make_segment(BlockPool& pool, uint64_t bytes);
  Storage* take_block(uint64_t bytes, uint32_t opcode, bool upload);
  Storage* hand_out(Block& block, uint64_t size);
  void begin_use(Block& block) const;
  uint64_t release(uint64_t bytes, size_t segments = SIZE_MAX);
  std::vector<Block*> unused_segments();
  void give_back(Block& whole) noexcept;
  void poll() const;
  bool own_memory() const;  // the core allocates this device's host memory
  plugrad_buffer* buffer(uint64_t size);
  void remember(uintptr_t address, uint64_t bytes);
  void require_usable(const plugrad_buffer* made, uint64_t size) const;
  [[noreturn]] void throw_full(uint64_t bytes, uint32_t opcode) const;

  DeviceState& device_;
  std::vector<HostRange> buffers_;  // the plugin's, in the order of their addresses, where the host can read addresses
  std::mutex mutex_;                // makes the plugin's alloc and free [device-serial]
  std::array<BlockPool, 2> pools_{BlockPool(2 << 20, (1 << 20) - 1), BlockPool(20 << 20, ~0ull)};
  std::vector<Storage*> chunks_;  // keeps them reachable for leak checkers
  MemoryStats stats_{};
  uint64_t sampled_peak_ = 0;
  uint64_t limit_ = ~0ull;
};

}  // namespace plugrad
