// Storage over memory that no device allocated: of another library, or of a file.
#pragma once
#include <core/runtime/device_state.hpp>

#include <cstdint>
#include <optional>

namespace plugrad {

struct Imported : Storage {
  using Release = void (*)(void* context);
  Release release = nullptr;
  void* context = nullptr;
  bool own = false;  // no other library knows the memory, so nobody but plugrad writes to it
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
// Whether another library may write to the memory at any time.
inline bool is_of_others(const Storage& storage) { return storage.imported && !static_cast<const Imported&>(storage).own; }
// Destroys an imported storage and releases its memory.
void give_back(Storage* imported) noexcept;

}  // namespace plugrad
