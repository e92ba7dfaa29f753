// Memory of PyTorch's storages on devices of plugrad.
//
// An address is a name: it lies in a range that the process cannot access, so that a read or write by the host faults at
// once. PyTorch needs distinct addresses and calculates with them. Memory belongs to an address, not to the context of a
// storage, because PyTorch also makes storages from an address alone (pickling, from_blob).
#pragma once
#include <c10/core/Allocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <bridge/devices.hpp>
#include <plugrad/tensor/memory.hpp>

#include <atomic>
#include <cstdint>

namespace plugrad_torch {

// The memory of an address. It is allocated by its first use: a kernel's result may take its place before.
class Block {
 public:
  Block(c10::DeviceIndex index, uint64_t bytes) : index_(index), bytes_(bytes) {}
  explicit Block(plugrad::Memory memory, c10::DeviceIndex index)
      : memory_(std::move(memory)), index_(index), bytes_(memory_.bytes()), has_memory_(true) {}

  c10::DeviceIndex index() const { return index_; }
  uint64_t bytes() const { return bytes_; }
  bool has_memory() const { return has_memory_.load(std::memory_order_acquire); }
  // Allocates at the first call; several threads may call it. Throws plugrad::Error (out_of_memory).
  const plugrad::Memory& memory();
  // Takes over memory of at least bytes() bytes, if there is none yet. Returns whether it did.
  bool adopt(plugrad::Memory memory);

 private:
  plugrad::Memory memory_;
  c10::DeviceIndex index_;
  uint64_t bytes_;
  std::atomic<bool> has_memory_{false};
};

// A storage's memory, not yet allocated. Null for 0 bytes.
c10::DataPtr unused_memory(uint64_t bytes, c10::DeviceIndex index);
// A storage's memory that plugrad has allocated.
c10::DataPtr storage_memory(plugrad::Memory memory, c10::DeviceIndex index);

struct Place {
  Block* block = nullptr;  // null: no block has the address
  uint64_t offset = 0;     // of the address in the block
};
// The block of a storage's memory, by its context, or else by its address.
Place place_of(const c10::DataPtr& memory);

c10::DeviceAllocator& allocator();

}  // namespace plugrad_torch
