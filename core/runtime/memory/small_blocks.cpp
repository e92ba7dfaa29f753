#include <core/runtime/memory/small_blocks.hpp>

#include <core/runtime/dispatch/stand_ins.hpp>
#include <core/runtime/memory/import.hpp>
#include <core/runtime/observe/observer.hpp>

#include <algorithm>
#include <memory>
#include <new>

namespace plugrad {
namespace {
constexpr uint64_t kChunk = 64 << 10;

// The number of blocks in a stack. A stack moves between a thread and the depot whole.
constexpr uint32_t capacity(uint32_t size_class) {
  return size_class < 3 ? kMagazine : static_cast<uint32_t>(kChunk / (kSmallest << size_class));
}
constexpr uint32_t class_of(uint32_t list) { return list % kSizeClasses; }

Depot<Storage>& depot(uint32_t list) {
  static Depot<Storage>* const depots = new Depot<Storage>[kStorageLists];
  return depots[list];
}

uint64_t bytes_of(const DeviceState& device, uint32_t size_class) {
  return std::max(kSmallest << size_class, device.info.alignment);
}

// The home runs in order, so a small block may be reused at once if only its home used it. If another stream used the block
// and is not known to have finished, the block keeps the record of this use, and the next write waits for the use.
// Returns false if the process is ending and the block must not be reused.
[[gnu::noinline, gnu::cold]] bool settle(Storage* storage) noexcept {
  DeviceState& device = *storage->device;
  if (streams::closed()) return false;
  storage->freed = device.compute->next;
  storage->written = 0;
  if (!storage->foreign) return true;
  if (!streams::idle(*storage, false)) streams::poll(*device.copies);
  if (streams::idle(*storage, false)) {
    storage->foreign.reset();
    storage->owner = device.compute->id;
  }
  return true;
}

void refill(Magazine<Storage>& magazine, DeviceState& device, uint32_t list, uint32_t size_class, uint32_t opcode) {
  if (magazine.refill(capacity(size_class), depot(list))) return;
  const uint64_t size = bytes_of(device, size_class);
  const uint64_t pieces = std::clamp<uint64_t>(kChunk / size, 1, capacity(size_class));
  auto storages = std::make_unique<Storage[]>(pieces);
  if (magazine.full() && !magazine.make_room(capacity(size_class), depot(list))) throw std::bad_alloc();
  const Storage* chunk = device.allocator.take_chunk(pieces * size, opcode);
  for (uint64_t i = pieces; i-- > 0;) {
    Storage& s = storages[i];
    s.buffer = chunk->buffer;
    s.offset = chunk->offset + i * size;
    s.device = &device;
    s.bytes = size;
    s.list = list;
    s.drop = device.compute ? kStorageLists : list;
    s.owner = s.writer = device.compute ? device.compute->id : 0;
    s.freed = chunk->freed;  // a first use by another stream waits for the home's uses of the chunk
    magazine.push(&s);
  }
  storages.release();  // they live until the process ends
}

// The observer's stand-in for a magazine of the calling thread, or the magazine.
Magazine<Storage>& magazine_of(Local& l, uint32_t list) {
  Magazine<Storage>* const aside = l.observer ? l.observer->magazine(list) : nullptr;
  return aside ? *aside : l.storages[list];
}
}  // namespace

void refill_small(DeviceState& device, uint32_t list, uint32_t size_class, uint32_t opcode) {
  if (device.compute) device.require_open();
  Local& l = local();
  Magazine<Storage>& magazine = magazine_of(l, list);
  if (magazine.empty()) refill(magazine, device, list, size_class, opcode);
  if (&magazine == &l.storages[list]) return;
  l.observer->lent = magazine.pop();
  observe::allocated(*l.observer->lent);
  l.storages[list].lend(l.observer->lent);
}

void destroy_slow(Storage* storage) noexcept {
  if (storage->captured || storage->tracked) [[unlikely]]
    observe::released(*storage);
  if (storage->stand_in) [[unlikely]]
    stand_ins::forget(*storage);
  if (storage->imported) return give_back(storage);
  if (storage->large) return storage->device->allocator.give(storage);
  if (!storage->device->compute) storage->drop = storage->list;  // tracking may have changed it
  else if (!settle(storage)) return;
  magazine_of(local(), storage->list).put(storage, capacity(class_of(storage->list)), depot(storage->list));
}

void flush_small(Local& l) noexcept {
  for (uint32_t list = 0; list < kStorageLists; ++list) l.storages[list].flush(depot(list));
}

uint64_t free_small_bytes(const DeviceState& device) {
  uint64_t bytes = 0;
  for (uint32_t size_class = 0; size_class < kSizeClasses; ++size_class) {
    const uint32_t list = device.small_lists + size_class;
    const uint64_t blocks = local().storages[list].count(capacity(size_class)) + depot(list).count(capacity(size_class));
    bytes += blocks * bytes_of(device, size_class);
  }
  return bytes;
}

}  // namespace plugrad
