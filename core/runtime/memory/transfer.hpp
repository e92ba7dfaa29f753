// Copies of bytes between host and devices, and between devices.
#pragma once
#include <core/runtime/device_state.hpp>

#include <cstdint>

namespace plugrad::transfer {

// Copies plain host memory to a piece of storage; the caller may reuse the source on return.
void upload(Storage& to, uint64_t offset, const void* from, uint64_t bytes);
// Copies from the storage to the host. Waits for the data; if a failure made the storage invalid, throws it.
void download(void* to, Storage& from, uint64_t offset, uint64_t bytes);
// The same, also while the thread records a step.
void peek(void* to, Storage& from, uint64_t offset, uint64_t bytes);
// Copies between devices: by the plugin if both are its own, else through host memory in bounded chunks.
void between(Storage& to, uint64_t to_offset, Storage& from, uint64_t from_offset, uint64_t bytes);

// Allocates host memory for asynchronous copies. Without pinned memory it is plain memory, and the copies are synchronous.
Pinned pin(DeviceState& device, uint64_t bytes);
void unpin(Pinned& pinned) noexcept;
// place: where in the pinned memory, in bytes.
void upload(Storage& to, uint64_t offset, Pinned& from, uint64_t bytes, uint64_t place = 0);
void download(Pinned& to, Storage& from, uint64_t offset, uint64_t bytes, uint64_t place = 0);
// Waits until the host may access the bytes; throws as download does.
void settle(Pinned& pinned);

}  // namespace plugrad::transfer
