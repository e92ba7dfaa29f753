// Bytes between host and devices, and from device to device.
#pragma once
#include <core/runtime/device_state.hpp>

#include <cstdint>

namespace plugrad::transfer {

// Plain host memory to a piece of storage; the source is the caller's again on return.
void upload(Storage& to, uint64_t offset, const void* from, uint64_t bytes);
// The reverse. Waits, and throws the failure that made the storage invalid.
void download(void* to, Storage& from, uint64_t offset, uint64_t bytes);
// From a device to another: by the plugin where both are its own, else through host memory in bounded chunks.
void between(Storage& to, uint64_t to_offset, Storage& from, uint64_t from_offset, uint64_t bytes);

// Host memory for asynchronous copies. On a device that has no pinned memory it is plain memory, and the copies wait.
Pinned pin(DeviceState& device, uint64_t bytes);
void unpin(Pinned& pinned) noexcept;
void upload(Storage& to, uint64_t offset, Pinned& from, uint64_t bytes);
void download(Pinned& to, Storage& from, uint64_t offset, uint64_t bytes);
// Waits until the bytes may be touched; throws as download does.
void settle(Pinned& pinned);

}  // namespace plugrad::transfer
