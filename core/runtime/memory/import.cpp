#include <core/runtime/memory/import.hpp>

#include <core/runtime/memory/small_blocks.hpp>
#include <core/runtime/streams/native.hpp>
#include <core/runtime/streams/stream.hpp>

namespace plugrad {

Ref<Storage> import_memory(DeviceState& device, const MemoryPiece& piece, std::optional<void*> after) {
  auto* storage = new Imported;
  Ref<Storage> made(storage);
  storage->buffer = reinterpret_cast<plugrad_buffer*>(piece.base);
  storage->offset = piece.offset;
  storage->bytes = storage->size = piece.bytes;
  storage->device = &device;
  storage->imported = true;
  storage->owner = storage->writer = device.compute ? device.compute->id : 0;
  if (after && device.compute) native::acquire(*storage, *after);
  return made;
}

void own_memory(Storage& imported, Imported::Release release, void* context) noexcept {
  auto& own = static_cast<Imported&>(imported);
  own.release = release;
  own.context = context;
}

void give_back(Storage* storage) noexcept {
  auto* own = static_cast<Imported*>(storage);
  // Its owner may reuse the memory at once, so no op may be in flight. When the process ends, nothing is released.
  if (DeviceState& device = *own->device; device.compute) {
    if (streams::closed()) return;
    streams::drain(*device.compute);
    streams::drain(*device.copies);
  }
  if (own->release) own->release(own->context);
  delete own;
}

}  // namespace plugrad
