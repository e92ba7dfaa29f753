// The memory of storages, for questions of overlap: see plugrad/sdk/extent.hpp.
#pragma once
#include <core/runtime/device_state.hpp>
#include <plugrad/sdk/extent.hpp>

namespace plugrad {

inline MemoryExtent extent_of(const Storage& storage, bool is_written, uint32_t user = 0) {
  const bool on_host = storage.device->host_memory();
  const uint64_t begin = (on_host ? reinterpret_cast<uintptr_t>(storage.buffer) : 0) + storage.offset;
  return {on_host ? nullptr : storage.buffer, begin, begin + storage.bytes, is_written, user};
}

}  // namespace plugrad
