// Segments of device memory, their blocks, and a search for free blocks by size.
//
// A segment is a buffer of the device. Its blocks are contiguous and linked to their neighbours. A block larger than the
// request is split; the rest is free. Free neighbours are joined only when no single block is large enough: a program
// repeats its sizes, so it reuses each block unchanged.
#pragma once
#include <core/runtime/memory/storage.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace plugrad {

class Budget;
struct Block;
class BlockPool;

struct Segment {
  BlockPool* pool = nullptr;
  Block* first = nullptr;
  uint64_t bytes = 0;
  bool loose = false;  // may have adjacent free blocks, and is in its pool's list of loose segments
  Segment* next_loose = nullptr;
};

struct Block : Storage {
  Segment* segment = nullptr;
  Block *before = nullptr, *after = nullptr;  // neighbours in the segment
  std::shared_ptr<Budget> budget;             // that counts it, if any
  bool free = false;
  Block *previous_free = nullptr, *next_free = nullptr;  // links of a list of FreeBlocks
  bool whole() const { return !before && !after; }       // it spans its segment
};

constexpr uint64_t kBlockGranule = 4096;  // sizes and offsets of blocks are multiples of it: see block_bytes
constexpr uint64_t kLargestBlock = 1ull << 47;

// The size of a block for `bytes`; wastes less than 4 KB. Processors detect store-to-load dependencies by the low 12 bits of
// an address; operands at the same offset in a page avoid false dependencies.
// Throws Error (out_of_memory) beyond kLargestBlock.
uint64_t block_bytes(uint64_t bytes);

// Lists of free blocks, eight for each doubling of the size.
class FreeBlocks {
 public:
  void insert(Block& block) noexcept;
  void remove(Block& block) noexcept;
  // The smallest block of at least `bytes` for which usable(block) is true, the latest among equals; or null.
  template <class Usable> Block* best(uint64_t bytes, const Usable& usable) const {
    for (uint32_t list = next_list(list_of(bytes)); list < kLists; list = next_list(list + 1)) {
      Block* found = nullptr;
      for (Block* each = lists_[list]; each && !(found && found->bytes == bytes); each = each->next_free)
        if (each->bytes >= bytes && (!found || each->bytes < found->bytes) && usable(*each)) found = each;
      if (found) return found;
    }
    return nullptr;
  }
  template <class F> void for_each(const F& f) const {
    for (Block* list : lists_)
      for (Block* each = list; each; each = each->next_free) f(*each);
  }

 private:
  static constexpr uint32_t kLists = 5 * 64;
  static uint32_t list_of(uint64_t bytes);
  uint32_t next_list(uint32_t from) const;  // the first non-empty list at or after `from`, or kLists

  std::array<Block*, kLists> lists_{};
  std::array<uint64_t, kLists / 64> filled_{};  // a bit per list: not empty
};

// The segments for a range of request sizes, and their free blocks.
class BlockPool {
 public:
  // segment: the usual bytes of a segment. most: the largest request.
  BlockPool(uint64_t segment, uint64_t most) : segment_(segment), most_(most) {}
  bool serves(uint64_t bytes) const { return bytes <= most_; }
  // The size of a new segment for a block.
  uint64_t segment_bytes(uint64_t block) const;

  // Adds a segment with a single free block.
  void add(Segment& segment, Block& whole) noexcept;
  // Removes a segment with its single free block; the caller owns both again.
  void remove(Block& whole) noexcept { free_.remove(whole); }
  // Removes a free block and cuts it to `bytes`. Has no effect if it throws std::bad_alloc.
  void take(Block& block, uint64_t bytes);
  // Cuts a block to `bytes`; the block is in no list. `rest` becomes the remaining block; returns it.
  static Block& cut(Block& block, uint64_t bytes, std::unique_ptr<Block> rest) noexcept;
  void give(Block& block) noexcept;

  template <class Usable> Block* best(uint64_t bytes, const Usable& usable) const { return free_.best(bytes, usable); }
  bool loose() const { return loose_; }
  // Joins adjacent free blocks if usable() is true for both. The joined block has the later `freed` of the two.
  template <class Usable> void join(const Usable& usable) noexcept {
    Segment* segment = loose_;
    loose_ = nullptr;
    while (segment) {
      Segment* const next = segment->next_loose;
      segment->loose = false;
      join_in(*segment, usable);
      segment = next;
    }
  }
  template <class F> void for_each_free(const F& f) const { free_.for_each(f); }

 private:
  template <class Usable> void join_in(Segment& segment, const Usable& usable) noexcept {
    for (Block* each = segment.first; each->after;) {
      const bool adjacent = each->free && each->after->free;
      if (adjacent && usable(*each) && usable(*each->after)) {
        absorb_next(*each);
      } else {
        if (adjacent) mark_loose(segment);
        each = each->after;
      }
    }
  }
  void absorb_next(Block& block) noexcept;
  void mark_loose(Segment& segment) noexcept;

  uint64_t segment_, most_;
  FreeBlocks free_;
  Segment* loose_ = nullptr;
};

}  // namespace plugrad
