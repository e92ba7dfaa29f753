#include <core/steps/packing.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <random>
#include <utility>

namespace plugrad::steps {
namespace {
// The search ends after kMostOrders orders, after kMostComparisons comparisons of two blocks, or with an arena that exceeds
// the least possible size by at most 1 part in kCloseEnough.
constexpr size_t kMostOrders = 400;
constexpr size_t kMostComparisons = 20'000'000;
constexpr uint64_t kCloseEnough = 256;
constexpr size_t kPatience = 50;  // orders without a gain before the search now and then takes a worse order

bool overlap(const Interval& a, const Interval& b) { return a.first <= b.last && b.first <= a.last; }

// Returns the lowest offset for a block among `placed`, sorted by their offsets.
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

// Returns the most bytes in use at any call.
uint64_t most_in_use(const std::vector<Interval>& blocks, const std::vector<Interval>& fixed) {
  std::map<uint64_t, int64_t> changes;  // by call
  for (const std::vector<Interval>* all : {&blocks, &fixed})
    for (const Interval& each : *all) {
      changes[each.first] += static_cast<int64_t>(each.bytes);
      changes[uint64_t{each.last} + 1] -= static_cast<int64_t>(each.bytes);
    }
  int64_t now = 0, most = 0;
  for (const auto& [call, change] : changes) most = std::max(most, now += change);
  return static_cast<uint64_t>(most);
}

class Placing {
 public:
  using Order = std::vector<uint32_t>;  // the indices of all blocks, in the order of their placing

  Placing(std::vector<Interval>& blocks, const std::vector<uint64_t>& rooms, const std::vector<Interval>& fixed)
      : blocks_(blocks), rooms_(rooms), fixed_in_(rooms.size()), fixed_(fixed.size()) {
    for (const Interval& each : fixed) add(fixed_in_[*each.room], each);
    const uint64_t room = std::accumulate(rooms.begin(), rooms.end(), uint64_t{0}), most = most_in_use(blocks, fixed);
    const uint64_t least = most > room ? most - room : 0;
    enough_ = least + least / kCloseEnough;
  }

  // Places the blocks in the best order found. Returns the size of the arena.
  uint64_t run() {
    const Order order = start();
    climb(order);
    blocks_ = std::move(best_);
    return least_;
  }

 private:
  // Places all blocks in an order.
  uint64_t put(const Order& order) {
    std::vector<std::vector<const Interval*>> in_rooms = fixed_in_;
    std::vector<const Interval*> in_arena;
    uint64_t size = 0;
    for (const uint32_t each : order) {
      Interval& block = blocks_[each];
      if (put_in_room(block, in_rooms)) continue;
      block.offset = lowest_gap(in_arena, block);
      add(in_arena, block);
      size = std::max(size, block.offset + block.bytes);
    }
    return size;
  }

  bool put_in_room(Interval& block, std::vector<std::vector<const Interval*>>& in_rooms) const {
    block.room = std::nullopt;
    for (size_t room = 0; room < rooms_.size(); ++room) {
      const uint64_t offset = lowest_gap(in_rooms[room], block);
      if (offset + block.bytes > rooms_[room]) continue;
      block.room = room;
      block.offset = offset;
      add(in_rooms[room], block);
      return true;
    }
    return false;
  }

  void keep_if_best(uint64_t size) {
    if (size >= least_) return;
    least_ = size;
    best_ = blocks_;
  }

  // Tries several orders, each with the largest blocks first. Returns the best order.
  Order start() {
    // Of two blocks of equal size, the block of lower rank is placed first. No rank is the best for all steps.
    using Rank = int64_t (*)(const Interval&);
    constexpr Rank kRanks[] = {
        [](const Interval&) -> int64_t { return 0; },  // as they were allocated
        [](const Interval& x) -> int64_t { return int64_t{x.first} - x.last; },
        [](const Interval& x) -> int64_t { return -int64_t{x.last}; },
        [](const Interval& x) -> int64_t { return x.last; },
    };
    Order best;
    for (const Rank rank : kRanks) {
      Order order(blocks_.size());
      std::iota(order.begin(), order.end(), 0u);
      std::ranges::stable_sort(order, {}, [&](uint32_t i) { return std::pair(~blocks_[i].bytes, rank(blocks_[i])); });
      const uint64_t size = put(order);
      if (size < least_) best = std::move(order);
      keep_if_best(size);
      if (least_ <= enough_) break;
    }
    return best;
  }

  void climb(Order order) {
    const size_t comparisons = blocks_.size() * (blocks_.size() + fixed_) + 1;
    std::minstd_rand random;
    std::vector<Interval> placed = best_;  // as `order` places them
    uint64_t size = least_;
    size_t since = 0;
    for (size_t tries = std::min(kMostOrders, kMostComparisons / comparisons); tries && least_ > enough_; --tries) {
      Order next = order;
      if (!move_one(next, placed, size, random)) return;
      const uint64_t found = put(next);
      since = found < least_ ? 0 : since + 1;
      keep_if_best(found);
      if (found > size && (since <= kPatience || random() % 4)) continue;
      order = std::move(next);
      placed = blocks_;
      size = found;
    }
  }

  // Moves a random block from the arena's end to an earlier place in the order: before a block in use at the same time, or
  // in exchange for it. Returns false if there is no such block.
  static bool move_one(Order& order, const std::vector<Interval>& placed, uint64_t size, std::minstd_rand& random) {
    const auto any_of = [&](const std::vector<size_t>& all) { return all[random() % all.size()]; };
    std::vector<size_t> last, before;
    for (size_t i = 0; i < order.size(); ++i)
      if (const Interval& each = placed[order[i]]; !each.room && each.offset + each.bytes == size) last.push_back(i);
    const size_t from = any_of(last);
    for (size_t i = 0; i < from; ++i)
      if (overlap(placed[order[i]], placed[order[from]])) before.push_back(i);
    if (before.empty()) return false;
    const auto to = order.begin() + static_cast<std::ptrdiff_t>(any_of(before));
    const auto moved = order.begin() + static_cast<std::ptrdiff_t>(from);
    if (random() % 2) std::iter_swap(to, moved);
    else std::rotate(to, moved, moved + 1);
    return true;
  }

  std::vector<Interval>& blocks_;
  const std::vector<uint64_t>& rooms_;
  std::vector<std::vector<const Interval*>> fixed_in_;  // by room
  const size_t fixed_;                                  // blocks in all rooms
  uint64_t enough_;                                     // a size that ends the search
  std::vector<Interval> best_;                          // the blocks as the best order so far places them
  uint64_t least_ = UINT64_MAX;                         // the size of their arena
};
}  // namespace

uint64_t pack(std::vector<Interval>& blocks, uint64_t alignment, const std::vector<uint64_t>& rooms,
              const std::vector<Interval>& fixed) {
  for (Interval& each : blocks) each.bytes = rounded(each.bytes, alignment);
  return Placing(blocks, rooms, fixed).run();
}

}  // namespace plugrad::steps
