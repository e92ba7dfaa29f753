#include <core/runtime/memory/allocator.hpp>

#include <core/runtime/device_state.hpp>
#include <core/runtime/dispatch/op_table.hpp>
#include <core/runtime/local.hpp>
#include <core/runtime/memory/budget.hpp>
#include <core/runtime/memory/small_blocks.hpp>
#include <core/runtime/observe/observed.hpp>
#include <core/runtime/plugins/foreign.hpp>
#include <core/runtime/plugins/platform.hpp>
#include <core/runtime/streams/stream.hpp>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>

namespace plugrad {
namespace {
constexpr uint64_t kHugeFrom = 1 << 20;   // host segments of at least this size get pages of their own
constexpr uint64_t kKeep = 256ull << 20;  // cached bytes to keep even if the peak was lower

// Returns a predicate of free blocks: no op in flight uses the block, as far as is known. The home may reuse its own blocks
// at once.
auto usable(const DeviceState& device, bool home_too) {
  return [&device, home_too](const Block& block) { return !device.compute || streams::idle(block, home_too); };
}
const char* bytes_of(const Block& block) { return reinterpret_cast<const char*>(block.buffer) + block.offset; }
}  // namespace

bool Allocator::own_memory() const { return !device_.table.alloc; }

void Allocator::poll() const {
  if (!device_.compute || streams::closed()) return;
  streams::poll(*device_.compute);
  streams::poll(*device_.copies);
}

// --- Segments.

// Makes cheap checks: without them, bad memory of a plugin would corrupt unrelated tensors later.
void Allocator::require_usable(const plugrad_buffer* made, uint64_t size) const {
  if (!made) throw_breach(device_.name, "alloc returned OK and no buffer");
  if (!device_.host_memory()) return;
  const auto from = reinterpret_cast<uintptr_t>(made);
  if (from % device_.info.alignment)
    throw_breach(device_.name,
                 "alloc returned a buffer that is not aligned to " + std::to_string(device_.info.alignment) + " bytes");
  const auto next = std::ranges::lower_bound(buffers_, from, {}, &HostRange::address);
  const bool before = next != buffers_.begin() && std::prev(next)->address + std::prev(next)->bytes > from;
  if (before || (next != buffers_.end() && next->address - from < size))
    throw_breach(device_.name, "alloc returned memory that overlaps a buffer in use");
}

plugrad_buffer* Allocator::buffer(uint64_t size) {
  const observe::Event allocating(EventKind::allocation, "allocate", &device_, size);
  plugrad_buffer* made = nullptr;
  if (!own_memory()) {
    const plugrad_status status = contained(device_.table.alloc, device_.handle, size, &made);
    if (status == PLUGRAD_OUT_OF_MEMORY) return nullptr;
    device_.check(status, "alloc");
    require_usable(made, size);
    return made;
  }
  void* pages = size >= kHugeFrom ? platform::allocate_pages(size)
                                  : std::aligned_alloc(std::max<uint64_t>(device_.info.alignment, 64), size);
  if (pages) platform::forbid_access(pages, size);
  return static_cast<plugrad_buffer*>(pages);
}

void Allocator::remember(uintptr_t address, uint64_t bytes) {
  buffers_.insert(std::ranges::upper_bound(buffers_, address, {}, &HostRange::address), {address, bytes});
}

Block* Allocator::make_segment(BlockPool& pool, uint64_t bytes) {
  if (bytes > limit_ || stats_.reserved > limit_ - bytes) return nullptr;
  auto segment = std::make_unique<Segment>();
  auto block = std::make_unique<Block>();
  block->buffer = buffer(bytes);
  if (!block->buffer) return nullptr;
  block->bytes = segment->bytes = bytes;
  block->device = &device_;
  block->large = true;
  if (device_.host_memory() && !own_memory()) remember(reinterpret_cast<uintptr_t>(block->buffer), bytes);
  pool.add(*segment.release(), *block);
  stats_.reserved += bytes;
  ++stats_.segments;
  return block.release();
}

void Allocator::give_back(Block& whole) noexcept {
  const std::unique_ptr<Block> block(&whole);
  const std::unique_ptr<Segment> segment(block->segment);
  const observe::Event releasing(EventKind::allocation, "release", &device_, segment->bytes);
  segment->pool->remove(whole);
  std::erase_if(buffers_, [&](const HostRange& each) { return each.address == reinterpret_cast<uintptr_t>(whole.buffer); });
  if (own_memory()) platform::permit_access(block->buffer, segment->bytes);
  if (!own_memory()) contained_quietly(device_.name, "free", device_.table.free, device_.handle, block->buffer);
  else if (segment->bytes >= kHugeFrom) platform::free_pages(block->buffer, segment->bytes);
  else std::free(block->buffer);
  stats_.reserved -= segment->bytes;
  --stats_.segments;
}

// Sorted by size, smallest first.
std::vector<Block*> Allocator::unused_segments() {
  poll();
  const auto idle = usable(device_, true);
  std::vector<Block*> unused;
  for (BlockPool& pool : pools_) {
    pool.join(idle);
    pool.for_each_free([&](Block& block) {
      if (block.whole() && idle(block)) unused.push_back(&block);
    });
  }
  std::ranges::sort(unused, {}, &Block::bytes);
  return unused;
}

// Releases at least `bytes` to the device in as few segments as possible, or less if it runs out of unused segments or
// reaches the limit on their number. Returns the released bytes.
uint64_t Allocator::release(uint64_t bytes, size_t segments) {
  std::vector<Block*> unused = unused_segments();
  uint64_t released = 0;
  for (; released < bytes && segments && !unused.empty(); --segments) {
    auto chosen = std::ranges::lower_bound(unused, bytes - released, {}, &Block::bytes);
    if (chosen == unused.end()) --chosen;
    released += (*chosen)->bytes;
    give_back(**chosen);
    unused.erase(chosen);
  }
  return released;
}

// --- Blocks.

Block* Allocator::find(BlockPool& pool, uint64_t size, bool upload) {
  bool refused = false;
  const auto fits = [&, idle = usable(device_, upload)](const Block& block) {
    const bool over = idle(block);
    refused |= !over;
    return over;
  };
  Block* block = pool.best(size, fits);
  if (block || (!refused && !pool.loose())) return block;
  poll();
  if (refused) block = pool.best(size, fits);
  if (block || !pool.loose()) return block;
  pool.join(usable(device_, upload));
  return pool.best(size, fits);
}

// A free block of either pool.
Block* Allocator::find_anywhere(uint64_t size, bool upload) {
  for (BlockPool& pool : pools_)
    if (Block* block = find(pool, size, upload)) return block;
  return nullptr;
}

// A free block in a new segment, or null if memory is exhausted.
Block* Allocator::extend(BlockPool& pool, uint64_t size) {
  const uint64_t cached = stats_.reserved - stats_.active, kept = std::max(kKeep, stats_.peak);
  if (cached > kept) release(cached - kept);
  if (Block* block = make_segment(pool, pool.segment_bytes(size))) return block;
  do {
    for (const uint64_t bytes : {size, pool.segment_bytes(size)})
      if (Block* block = make_segment(pool, bytes)) {
        take_report();  // discards reports of failed attempts
        return block;
      }
  } while (release(stats_.reserved + size > limit_ ? stats_.reserved + size - limit_ : size, 1));
  return nullptr;
}

Storage* Allocator::hand_out(Block& block, uint64_t size) {
  block.segment->pool->take(block, size);
  if (own_memory()) platform::permit_access(bytes_of(block), size);
  stats_.active += size;
  stats_.peak = std::max(stats_.peak, stats_.active);
  sampled_peak_ = std::max(sampled_peak_, stats_.active);
  begin_use(block);
  return &block;
}

void Allocator::begin_use(Block& block) const {
  block.refs.store(1, std::memory_order_relaxed);
  block.foreign.reset();
  block.owner = block.writer = device_.compute ? device_.compute->id : 0;
  block.written = 0;
}

void Allocator::throw_full(uint64_t bytes, uint32_t opcode) const {
  const std::string why = take_report();
  std::string state = std::to_string(stats_.active) + " in use";
  if (stats_.reserved > stats_.active)
    state += ", " + std::to_string(stats_.reserved - stats_.active) + " free in pieces that are too small";
  if (limit_ != ~0ull) state += ", at most " + std::to_string(limit_) + " by the option memory";
  const std::string where =
      opcode ? "[" + op_label(opcode) + "] out of memory on " + device_.name : "[" + device_.name + "] out of memory";
  throw Error(Code::out_of_memory,
              where + ": " + std::to_string(bytes) + " bytes wanted, " + state + (why.empty() ? "" : " (" + why + ")"));
}

Storage* Allocator::take(uint64_t bytes, uint32_t opcode, bool upload) {
  Charge charge(block_bytes(bytes), opcode);
  Storage* const block = take_block(bytes, opcode, upload);
  charge.move_to(static_cast<Block&>(*block));
  observe::allocated(*block);
  return block;
}

Storage* Allocator::take_block(uint64_t bytes, uint32_t opcode, bool upload) {
  device_.require_open();
  observe::before_lock();
  const uint64_t size = block_bytes(bytes);
  BlockPool& pool = pool_for(size);
  std::unique_lock lock(mutex_);
  if (Block* block = find(pool, size, upload)) return hand_out(*block, size);
  if (Block* block = extend(pool, size)) return hand_out(*block, size);
  if (device_.compute && stats_.reserved > stats_.active) {  // the free blocks may still be in flight
    lock.unlock();
    const observe::Event waiting(EventKind::wait, "wait for memory", &device_);
    streams::drain(*device_.compute);
    streams::drain(*device_.copies);
    lock.lock();
    if (Block* block = find(pool, size, upload)) return hand_out(*block, size);
    if (Block* block = extend(pool, size)) return hand_out(*block, size);
  }
  if (Block* block = find_anywhere(size, upload)) return hand_out(*block, size);
  throw_full(bytes, opcode);
}

std::vector<Ref<Storage>> Allocator::take_row(std::span<const uint64_t> bytes, bool may_extend) {
  device_.require_open();
  observe::before_lock();
  uint64_t size = 0;
  std::vector<std::unique_ptr<Block>> rests;
  for (const uint64_t each : bytes) {
    size += block_bytes(each);
    rests.push_back(std::make_unique<Block>());
  }
  std::vector<Ref<Storage>> row;
  row.reserve(bytes.size());
  Charge charge(size, 0);
  BlockPool& pool = pool_for(size);
  const std::lock_guard lock(mutex_);
  Block* block = find(pool, size, false);
  if (!block && may_extend) block = extend(pool, size);
  if (!block) return row;
  hand_out(*block, size);
  for (size_t i = 0; i < bytes.size(); ++i) {
    row.emplace_back(block)->size = bytes[i];
    Block* const next =
        i + 1 == bytes.size() ? nullptr : &BlockPool::cut(*block, block_bytes(bytes[i]), std::move(rests[i]));
    charge.move_to(*block);
    if (!next) break;
    begin_use(*next);
    block = next;
  }
  return row;
}

Storage* Allocator::take_chunk(uint64_t bytes, uint32_t opcode) {
  Storage* chunk = take_block(bytes, opcode, false);
  const std::lock_guard lock(mutex_);
  chunks_.push_back(chunk);
  stats_.small += chunk->bytes;
  return chunk;
}

void Allocator::give(Storage* storage) noexcept {
  if (device_.compute) {
    if (streams::closed()) return;  // nothing is released any more, and locks may be held by dead threads
    storage->freed = device_.compute->next;
  }
  auto& block = static_cast<Block&>(*storage);
  leave_budget(block);
  if (own_memory()) platform::forbid_access(bytes_of(block), block.bytes);
  const std::lock_guard lock(mutex_);
  stats_.active -= block.bytes;
  block.segment->pool->give(block);
}

uint64_t Allocator::trim() {
  if (device_.compute && streams::closed()) return 0;
  observe::before_lock();
  const std::lock_guard lock(mutex_);
  return release(~0ull);
}

MemoryStats Allocator::stats() {
  const std::lock_guard lock(mutex_);
  MemoryStats now = stats_;
  now.cached = now.reserved - now.active;
  for (BlockPool& pool : pools_) {
    pool.join(usable(device_, true));
    pool.for_each_free([&](const Block& block) { now.largest_free = std::max(now.largest_free, block.bytes); });
  }
  return now;
}

void Allocator::reset_peak() {
  const std::lock_guard lock(mutex_);
  stats_.peak = stats_.active;
}

std::pair<uint64_t, uint64_t> Allocator::sample() {
  const std::lock_guard lock(mutex_);
  return {stats_.active, std::exchange(sampled_peak_, stats_.active)};
}

}  // namespace plugrad
