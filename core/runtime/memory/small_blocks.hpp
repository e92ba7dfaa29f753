// The life cycle of blocks, mainly of small blocks: every op allocates a block.
//
//   created  refill_small cuts a chunk of the device's allocator into blocks of 64 << class bytes, up to 4 KB. Chunks are
//            never released, so a small block lives until the process ends.
//   taken    allocate pops it from the thread's magazine of its device and class: no lock, no call.
//   dropped  destroy pushes it onto the magazine of the calling thread.
//   shared   A full or empty magazine exchanges a whole stack with the depot. All threads share the depot. An ending thread
//            gives all its blocks to the depot.
//
// destroy separates all other storages by one comparison: Storage::drop names an always full magazine if a storage is large,
// imported, or on a device with streams. With streams, the slow path first resolves uses of a small block by other streams.
#pragma once
#include <core/runtime/device_state.hpp>
#include <core/runtime/local.hpp>
#include <core/runtime/memory/storage.hpp>

#include <bit>
#include <cstdint>

namespace plugrad {

// Fills the empty magazine of a class of small blocks. Throws Error (out_of_memory); the message names the op.
[[gnu::noinline, gnu::cold]] void refill_small(DeviceState& device, uint32_t list, uint32_t size_class, uint32_t opcode);
// Destroys storages beyond the fast path of destroy.
void destroy_slow(Storage* storage) noexcept;

// always_inline, here and on the path of every op: without it compilers differ by 7 ns per op.

// Allocates `bytes` of uninitialised memory. opcode: the op that needs the memory, for the error, or 0. upload: the copy
// stream uses the memory first. Throws Error (out_of_memory).
[[gnu::always_inline]] inline Ref<Storage> allocate(Local& l, DeviceState& device, uint64_t bytes, uint32_t opcode,
                                                    bool upload = false) {
  Storage* storage;
  if (bytes <= kLargestSmall) [[likely]] {
    const uint32_t size_class = bytes <= kSmallest ? 0 : static_cast<uint32_t>(std::bit_width((bytes - 1) / kSmallest));
    const uint32_t list = device.small_lists + size_class;
    Magazine<Storage>& magazine = l.storages[list];
    if (magazine.empty()) [[unlikely]]
      refill_small(device, list, size_class, opcode);
    storage = magazine.pop();
    storage->refs.store(1, std::memory_order_relaxed);
  } else {
    storage = device.allocator.take(bytes, opcode, upload);
  }
  storage->size = bytes;
  return Ref<Storage>(storage);
}
inline Ref<Storage> allocate(DeviceState& device, uint64_t bytes, uint32_t opcode, bool upload = false) {
  return allocate(local(), device, bytes, opcode, upload);
}

inline void destroy(Local& l, Storage* storage) noexcept {
  Magazine<Storage>& magazine = l.storages[storage->drop];
  if (magazine.full()) [[unlikely]]
    return destroy_slow(storage);
  magazine.push(storage);
}
inline void destroy(Storage* storage) noexcept { destroy(local(), storage); }

// Gives the blocks of an ending thread to the depot.
void flush_small(Local& l) noexcept;
// Bytes of a device's free small blocks in the depot and in the calling thread's magazines. Reading the magazines of other
// threads would slow these threads down.
uint64_t free_small_bytes(const DeviceState& device);

}  // namespace plugrad
