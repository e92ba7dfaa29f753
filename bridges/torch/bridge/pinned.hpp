// Memory of the host for asynchronous copies: Tensor.pin_memory().
#pragma once
#include <c10/core/Allocator.h>
#include <plugrad/ops/transfer.hpp>

#include <cstdint>

namespace plugrad_torch {

struct PinnedPlace {
  plugrad::PinnedMemory* memory = nullptr;  // null: the address is not in pinned memory
  uint64_t offset = 0;
};
// The pinned memory that contains the address.
PinnedPlace pinned_at(const void* address);
// Allocates memory for copies of the thread's current device.
c10::Allocator& pinned_allocator();

}  // namespace plugrad_torch
