#include <core/runtime/allocator.hpp>

#include <core/runtime/device_state.hpp>
#include <core/runtime/local.hpp>
#include <core/runtime/platform.hpp>
#include <core/runtime/stream.hpp>

#include <algorithm>
#include <bit>
#include <cstdlib>

namespace plugrad {
namespace {
constexpr uint64_t kPage = 4096;
constexpr uint64_t kHugeFrom = 1 << 20;     // host blocks from here on have pages of their own
constexpr uint64_t kKeep = 256ull << 20;    // cached at least, whatever the peak was

// Eight sizes a doubling: at most an eighth is wasted, and blocks find new users.
uint64_t rounded(uint64_t bytes) {
  const uint64_t step = std::max(kPage, std::bit_floor(bytes) / 8);
  return (bytes + step - 1) / step * step;
}
}  // namespace

plugrad_buffer* Allocator::buffer(uint64_t size) {
  plugrad_buffer* made = nullptr;
  if (device_.table.alloc) {
    const plugrad_status status = device_.table.alloc(device_.handle, size, &made);
    if (status == PLUGRAD_OUT_OF_MEMORY) return nullptr;
    device_.check(status, "alloc");
    return made;
  }
  void* pages = size >= kHugeFrom ? platform::allocate_pages(size)
                                  : std::aligned_alloc(std::max<uint64_t>(device_.info.alignment, 64), size);
  return static_cast<plugrad_buffer*>(pages);
}

void Allocator::return_to_device(Storage* block) noexcept {
  if (device_.table.free) device_.table.free(device_.handle, block->buffer);
  else if (block->bytes >= kHugeFrom) platform::free_pages(block->buffer, block->bytes);
  else std::free(block->buffer);
  stats_.cached -= block->bytes;
  stats_.reserved -= block->bytes;
  delete block;
}

Storage* Allocator::reuse(uint64_t size, bool upload) {
  // The next larger sizes serve as well, as long as an eighth is wasted at most.
  for (auto list = free_.lower_bound(size); list != free_.end() && list->first <= size + size / 8; ++list) {
    std::vector<Storage*>& blocks = list->second;
    for (size_t i = blocks.size(); i-- > 0;) {
      if (device_.compute && !streams::idle(*blocks[i], upload)) continue;
      Storage* block = blocks[i];
      blocks.erase(blocks.begin() + static_cast<ptrdiff_t>(i));
      stats_.cached -= block->bytes;
      return block;
    }
  }
  return nullptr;
}

Storage* Allocator::make(uint64_t size, uint64_t cached_limit) {
  if (stats_.reserved + size > limit_) trim_to(0);
  else trim_to(cached_limit);
  if (stats_.reserved + size > limit_) return nullptr;
  plugrad_buffer* made = buffer(size);
  if (!made && trim_to(0)) made = buffer(size);
  if (!made) return nullptr;
  auto* block = new Storage;
  block->buffer = made;
  block->bytes = size;
  block->device = &device_;
  block->large = true;
  stats_.reserved += size;
  return block;
}

Storage* Allocator::take(uint64_t bytes, bool upload) {
  device_.require_open();
  const uint64_t size = rounded(bytes);
  if (device_.compute) {
    streams::poll(*device_.compute);
    streams::poll(*device_.copies);
  }
  std::unique_lock lock(mutex_);
  Storage* block = reuse(size, upload);
  if (!block) block = make(size, std::max(kKeep, stats_.peak));
  if (!block && stats_.cached && device_.compute) {  // what is free is in flight still
    lock.unlock();
    streams::drain(*device_.compute);
    streams::drain(*device_.copies);
    lock.lock();
    block = make(size, 0);
  }
  if (!block) {
    const std::string why = take_report();
    throw Error(Code::out_of_memory, "[" + device_.name + "] out of memory: " + std::to_string(bytes) + " bytes wanted, " +
                                         std::to_string(stats_.active) + " in use" + (why.empty() ? "" : " (" + why + ")"));
  }
  stats_.active += block->bytes;
  stats_.peak = std::max(stats_.peak, stats_.active);
  block->refs.store(1, std::memory_order_relaxed);
  block->foreign.reset();
  block->owner = block->writer = device_.compute ? device_.compute->id : 0;
  block->written = 0;
  return block;
}

Storage* Allocator::take_for_ever(uint64_t bytes) {
  Storage* chunk = take(bytes, false);
  const std::lock_guard lock(mutex_);
  chunks_.push_back(chunk);
  return chunk;
}

void Allocator::give(Storage* block) noexcept {
  if (device_.compute) {
    if (streams::closed()) return;  // nothing is given back any more, and no lock is to be trusted
    block->freed = device_.compute->next;
  }
  const std::lock_guard lock(mutex_);
  stats_.active -= block->bytes;
  stats_.cached += block->bytes;
  free_[block->bytes].push_back(block);
}

uint64_t Allocator::trim_to(uint64_t cached) {
  const uint64_t before = stats_.cached;
  for (auto list = free_.rbegin(); list != free_.rend() && stats_.cached > cached; ++list) {
    std::erase_if(list->second, [&](Storage* block) {
      if (stats_.cached <= cached || (device_.compute && !streams::idle(*block, true))) return false;
      return_to_device(block);
      return true;
    });
  }
  return before - stats_.cached;
}

uint64_t Allocator::trim() {
  if (device_.compute) {
    if (streams::closed()) return 0;
    streams::poll(*device_.compute);
    streams::poll(*device_.copies);
  }
  const std::lock_guard lock(mutex_);
  return trim_to(0);
}

MemoryStats Allocator::stats() {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void Allocator::reset_peak() {
  const std::lock_guard lock(mutex_);
  stats_.peak = stats_.active;
}

}  // namespace plugrad
