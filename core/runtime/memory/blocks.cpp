#include <core/runtime/memory/blocks.hpp>

#include <plugrad/runtime/error.hpp>

#include <algorithm>
#include <bit>
#include <memory>
#include <string>

namespace plugrad {
namespace {
constexpr uint64_t kSegmentStep = 2 << 20;  // sizes of large segments are multiples of it, like device pages
}

uint64_t block_bytes(uint64_t bytes) {
  if (bytes > kLargestBlock)
    throw Error(Code::out_of_memory, "[memory] " + std::to_string(bytes) + " bytes wanted, more than any device has");
  return std::max(bytes + kBlockGranule - 1, kBlockGranule) / kBlockGranule * kBlockGranule;
}

// Lists 0 to 7 hold blocks of 0 to 7 granules; each later list spans an eighth of a doubling.
uint32_t FreeBlocks::list_of(uint64_t bytes) {
  const uint64_t granules = bytes / kBlockGranule;
  if (granules < 8) return static_cast<uint32_t>(granules);
  const uint32_t doubling = static_cast<uint32_t>(std::bit_width(granules)) - 1;
  return (doubling - 2) * 8 + static_cast<uint32_t>(granules >> (doubling - 3) & 7);
}

uint32_t FreeBlocks::next_list(uint32_t from) const {
  if (from >= kLists) return kLists;
  uint64_t word = filled_[from / 64] >> from % 64 << from % 64;
  for (uint32_t i = from / 64;; word = filled_[i]) {
    if (word) return i * 64 + static_cast<uint32_t>(std::countr_zero(word));
    if (++i == filled_.size()) return kLists;
  }
}

void FreeBlocks::insert(Block& block) noexcept {
  const uint32_t list = list_of(block.bytes);
  block.free = true;
  block.previous_free = nullptr;
  block.next_free = std::exchange(lists_[list], &block);
  if (block.next_free) block.next_free->previous_free = &block;
  filled_[list / 64] |= 1ull << list % 64;
}

void FreeBlocks::remove(Block& block) noexcept {
  const uint32_t list = list_of(block.bytes);
  block.free = false;
  (block.previous_free ? block.previous_free->next_free : lists_[list]) = block.next_free;
  if (block.next_free) block.next_free->previous_free = block.previous_free;
  if (!lists_[list]) filled_[list / 64] &= ~(1ull << list % 64);
}

uint64_t BlockPool::segment_bytes(uint64_t block) const {
  return block <= segment_ / 2 ? segment_ : (block + kSegmentStep - 1) / kSegmentStep * kSegmentStep;
}

void BlockPool::add(Segment& segment, Block& whole) noexcept {
  segment.pool = this;
  segment.first = &whole;
  whole.segment = &segment;
  free_.insert(whole);
}

void BlockPool::take(Block& block, uint64_t bytes) {
  std::unique_ptr<Block> rest(block.bytes > bytes ? new Block : nullptr);
  free_.remove(block);
  if (rest) free_.insert(cut(block, bytes, std::move(rest)));
}

Block& BlockPool::cut(Block& block, uint64_t bytes, std::unique_ptr<Block> rest) noexcept {
  rest->buffer = block.buffer;
  rest->offset = block.offset + bytes;
  rest->device = block.device;
  rest->bytes = block.bytes - bytes;
  rest->large = true;
  rest->freed = block.freed;  // same home uses; uses by other streams are over, or the block was not usable
  rest->segment = block.segment;
  rest->before = &block;
  rest->after = block.after;
  if (block.after) block.after->before = rest.get();
  block.after = rest.get();
  block.bytes = bytes;
  return *rest.release();
}

void BlockPool::give(Block& block) noexcept {
  free_.insert(block);
  if ((block.before && block.before->free) || (block.after && block.after->free)) mark_loose(*block.segment);
}

void BlockPool::mark_loose(Segment& segment) noexcept {
  if (std::exchange(segment.loose, true)) return;
  segment.next_loose = std::exchange(loose_, &segment);
}

void BlockPool::absorb_next(Block& block) noexcept {
  const std::unique_ptr<Block> next(block.after);
  free_.remove(block);
  free_.remove(*next);
  block.bytes += next->bytes;
  block.freed = std::max(block.freed, next->freed);
  block.foreign.reset();  // uses by other streams are over, or the blocks were not usable
  block.after = next->after;
  if (block.after) block.after->before = &block;
  free_.insert(block);
}

}  // namespace plugrad
