// Storage over memory of another library.
#pragma once
#include <core/runtime/device_state.hpp>

#include <cstdint>
#include <optional>

namespace plugrad {

struct Imported : Storage {
  using Release = void (*)(void* context);
  Release release = nullptr;
  void* context = nullptr;
};

// A piece of memory: `bytes` bytes at base + offset. base is aligned as the device's buffers are.
struct MemoryPiece {
  uintptr_t base;
  uint64_t offset, bytes;
};

// Returns storage over memory still owned by the caller. after: a native stream; uses of the memory wait for work submitted
// to it so far. Throws as native::acquire.
Ref<Storage> import_memory(DeviceState& device, const MemoryPiece& piece, std::optional<void*> after);
// From now on the storage owns the memory: it calls release(context) once, when nothing uses the memory any more, on the
// thread that releases the last reference.
void own_memory(Storage& imported, Imported::Release release, void* context) noexcept;
// Destroys an imported storage and releases its memory.
void give_back(Storage* imported) noexcept;

}  // namespace plugrad
