#include <core/runtime/placement.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace plugrad::capture {
namespace {
bool overlap(const Interval& a, const Interval& b) { return a.first <= b.last && b.first <= a.last; }

// The lowest place for a block beside others, which are sorted by their offsets.
uint64_t lowest_gap(const std::vector<const Interval*>& placed, const Interval& block) {
  uint64_t at = 0;
  for (const Interval* each : placed) {
    if (!overlap(*each, block)) continue;
    if (each->offset >= at + block.bytes) break;
    at = std::max(at, each->offset + each->bytes);
  }
  return at;
}

void add(std::vector<const Interval*>& placed, const Interval& block) {
  placed.insert(std::ranges::upper_bound(placed, block.offset, {}, &Interval::offset), &block);
}
void put(std::vector<const Interval*>& placed, Interval& block, uint64_t offset) {
  block.offset = offset;
  add(placed, block);
}

// Of two blocks of one size, that of the lower rank is placed first. No rank is the best for all steps, so all are tried.
using Rank = int64_t (*)(const Interval&);
constexpr Rank kRanks[] = {
    [](const Interval&) -> int64_t { return 0; },  // as they were allocated
    [](const Interval& x) -> int64_t { return int64_t{x.first} - x.last; },
    [](const Interval& x) -> int64_t { return -int64_t{x.last}; },
    [](const Interval& x) -> int64_t { return x.last; },
};

// Returns the size of the arena.
uint64_t place_in_order(std::vector<Interval>& blocks, Rank rank, const std::vector<Room>& rooms,
                        const std::vector<Interval>& fixed) {
  std::vector<Interval*> order;
  for (Interval& each : blocks) order.push_back(&each);
  std::ranges::stable_sort(order, {}, [rank](const Interval* x) { return std::pair(~x->bytes, rank(*x)); });
  std::vector<std::vector<const Interval*>> in_rooms(rooms.size());
  for (const Interval& each : fixed) add(in_rooms[*each.room], each);
  std::vector<const Interval*> in_arena;
  uint64_t size = 0;
  for (Interval* each : order) {
    each->room = std::nullopt;
    for (size_t room = 0; room < rooms.size() && !each->room; ++room) {
      if (each->last >= rooms[room].until) continue;
      const uint64_t offset = lowest_gap(in_rooms[room], *each);
      if (offset + each->bytes > rooms[room].bytes) continue;
      each->room = room;
      put(in_rooms[room], *each, offset);
    }
    if (each->room) continue;
    put(in_arena, *each, lowest_gap(in_arena, *each));
    size = std::max(size, each->offset + each->bytes);
  }
  return size;
}
}  // namespace

uint64_t place(std::vector<Interval>& blocks, uint64_t alignment, const std::vector<Room>& rooms,
               const std::vector<Interval>& fixed) {
  for (Interval& each : blocks) each.bytes = rounded(each.bytes, alignment);
  std::vector<Interval> best = blocks;
  uint64_t least = UINT64_MAX;
  for (const auto rank : kRanks) {
    const uint64_t size = place_in_order(blocks, rank, rooms, fixed);
    if (size >= least) continue;
    least = size;
    best = blocks;
    if (!size) break;
  }
  blocks = std::move(best);
  return least;
}

}  // namespace plugrad::capture
