// The life of a block, and of small ones above all: every op makes one.
//
//   made     refill_small cuts a chunk of the device's allocator into blocks of 64 << class bytes, up to 4 KB. Chunks are
//            never given back, so a small block lives as long as the process.
//   taken    allocate pops it from the thread's magazine of its device and class: no lock, no call.
//   dropped  destroy pushes it onto the magazine of the thread that drops it.
//   shared   A magazine that is full or empty is exchanged whole with the depot, which all threads share. A thread that ends
//            gives its magazines to the depot.
//
// One comparison in destroy sorts out all other storages: Storage::drop names a magazine that is always full for what is
// large, imported, or on a device with streams, where the uses of a small block by other streams have to be settled first.
#pragma once
#include <core/runtime/device_state.hpp>
#include <core/runtime/local.hpp>
#include <core/runtime/storage.hpp>

#include <bit>
#include <cstdint>

namespace plugrad {

// Fills the empty magazine of a class of small blocks. Throws Error (out_of_memory).
[[gnu::noinline, gnu::cold]] void refill_small(DeviceState& device, uint32_t list, uint32_t size_class);
// For what destroy does not settle itself.
void destroy_slow(Storage* storage) noexcept;

// always_inline, here and on the way of every op: left to themselves compilers differ by 7 ns an op.

// Memory for `bytes`, not written yet. upload: its first use is by the copy stream.
[[gnu::always_inline]] inline Ref<Storage> allocate(Local& l, DeviceState& device, uint64_t bytes, bool upload = false) {
  Storage* storage;
  if (bytes <= kLargestSmall) [[likely]] {
    const uint32_t size_class = bytes <= kSmallest ? 0 : static_cast<uint32_t>(std::bit_width((bytes - 1) / kSmallest));
    const uint32_t list = device.ordinal * kSizeClasses + size_class;
    Magazine<Storage>& magazine = l.storages[list];
    if (magazine.empty()) [[unlikely]] refill_small(device, list, size_class);
    storage = magazine.pop();
    storage->refs.store(1, std::memory_order_relaxed);
  } else {
    storage = device.allocator.take(bytes, upload);
  }
  storage->size = bytes;
  return Ref<Storage>(storage);
}
inline Ref<Storage> allocate(DeviceState& device, uint64_t bytes, bool upload = false) {
  return allocate(local(), device, bytes, upload);
}

inline void destroy(Local& l, Storage* storage) noexcept {
  Magazine<Storage>& magazine = l.storages[storage->drop];
  if (magazine.full()) [[unlikely]] return destroy_slow(storage);
  magazine.push(storage);
}
inline void destroy(Storage* storage) noexcept { destroy(local(), storage); }

// Gives the magazines of a thread that ends to the depot.
void flush_small(Local& l) noexcept;
// Bytes of small blocks of a device that lie in the depot or in magazines of the calling thread. Those in magazines of other
// threads cannot be seen without slowing these down.
uint64_t free_small_bytes(const DeviceState& device);

}  // namespace plugrad
