// Storage over memory that is somebody else's.
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

// A piece of memory: an address that is aligned as the device's buffers are, and bytes behind it.
struct MemoryPiece {
  uintptr_t base;
  uint64_t offset, bytes;
};

// release(context) is called once, when nothing uses the memory any more, on the thread that drops it last; not where this
// throws. after: uses of the memory start after what that native stream was given so far. Throws Error as native::acquire.
Ref<Storage> import_memory(DeviceState& device, const MemoryPiece& piece, std::optional<void*> after,
                           Imported::Release release, void* context);
// The end of an imported storage.
void give_back(Storage* imported) noexcept;

}  // namespace plugrad
