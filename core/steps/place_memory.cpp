// Places the step's own memory.
#include <core/runtime/memory/small_blocks.hpp>
#include <core/steps/packing.hpp>
#include <core/steps/plan.hpp>

#include <algorithm>
#include <functional>

namespace plugrad::steps {
namespace {
constexpr uint64_t kLeastRoom = 64 << 10;  // bytes of a room: binding its temporary memory costs time
constexpr uint32_t kLastItem = kNever - 1;

template <class F> void for_each_memory(const Call& call, const F& f) {
  for (const uint32_t memory : call.memories)
    if (memory != kNever) f(memory);
  if (call.workspace != kNever) f(call.workspace);
}

Uses find_uses(const Trace& trace, const Simplified& simplified, const Fused& fused) {
  Uses uses{std::vector<uint32_t>(trace.memories.size(), kNever), std::vector<uint32_t>(trace.memories.size())};
  const auto use = [&](uint32_t memory, uint32_t item) {
    uses.first[memory] = std::min(uses.first[memory], item);
    uses.last[memory] = std::max(uses.last[memory], item);
  };
  for (const uint32_t at : simplified.once) for_each_memory(trace.calls[at], [&](uint32_t memory) { use(memory, 0); });
  for (uint32_t item = 0; item < fused.items.size(); ++item)
    for_each_memory(fused.call_of(trace, item), [&](uint32_t memory) { use(memory, item); });
  // If a fusion's calls run singly, they also use memories that the fusion leaves to different items.
  for (uint32_t item = 0; item < fused.items.size(); ++item) {
    if (fused.items[item].fusion == kNever) continue;
    for (const uint32_t at : fused.items[item].calls)
      for (const uint32_t memory : trace.calls[at].memories)
        if (memory != kNever && uses.first[memory] != kNever) use(memory, item);
  }
  return uses;
}

class MemoryPlacing {
 public:
  MemoryPlacing(const Trace& trace, const Simplified& simplified, const Fused& fused)
      : trace_(trace), simplified_(simplified), fused_(fused),
        alignment_(trace.device ? std::max<uint64_t>(trace.device->info.alignment, 64) : 64) {
    made_.uses = find_uses(trace, simplified, fused);
  }

  Placed place_all(std::vector<uint32_t> row) {
    place_temporaries(std::move(row));
    made_.inner.resize(fused_.fusions.size());
    for (uint32_t item = 0; item < fused_.items.size(); ++item)
      if (fused_.items[item].fusion != kNever) place_inner(item);
    place_constants();
    return std::move(made_);
  }

 private:
  uint64_t bytes_of(uint32_t memory) const { return trace_.memories[memory].bytes; }
  bool is_used(uint32_t memory) const { return made_.uses.first[memory] != kNever; }

  void add_room(std::vector<uint32_t> memories) {
    uint64_t bytes = 0;
    for (const uint32_t memory : memories) {
      const uint64_t size = memories.size() > 1 ? block_bytes(bytes_of(memory)) : bytes_of(memory);
      owners_.push_back({size, made_.uses.first[memory], kLastItem, bytes, made_.rooms.size()});
      bytes += size;
    }
    room_bytes_.push_back(bytes);
    made_.rooms.push_back({std::move(memories)});
  }

  // Only used, large memories made by the step can have a room.
  std::vector<uint32_t> add_row(std::vector<uint32_t> row) {
    std::erase_if(row, [&](uint32_t each) {
      return !is_used(each) || trace_.memories[each].is_older() || bytes_of(each) <= kLargestSmall;
    });
    uint64_t row_bytes = 0;
    for (const uint32_t each : row) row_bytes += bytes_of(each);
    std::ranges::stable_sort(row, std::greater(), [&](uint32_t each) { return made_.uses.first[each]; });
    if (row_bytes >= kLeastRoom) add_room(row);
    return row;
  }

  // The step allocates and releases temporary memory. Results and gradients have blocks of their own; temporary memory may
  // overlap them until their first use.
  void place_temporaries(std::vector<uint32_t> row) {
    row = add_row(std::move(row));
    std::vector<uint32_t> placed;
    for (uint32_t memory = 0; memory < trace_.memories.size(); ++memory) {
      const Memory& m = trace_.memories[memory];
      if (!is_used(memory) || m.is_older() || simplified_.is(memory, Simplified::kConstant)) continue;
      const bool is_bound = simplified_.is(memory, Simplified::kBound);
      if (!m.outlives() && !is_bound) {
        blocks_.push_back({m.bytes, made_.uses.first[memory], made_.uses.last[memory]});
        placed.push_back(memory);
        made_.temporary_bytes += m.bytes;
      } else if (is_bound && m.bytes >= kLeastRoom && std::ranges::find(row, memory) == row.end()) {
        add_room({memory});
      }
    }
    made_.arena_bytes = pack(blocks_, alignment_, room_bytes_, owners_);
    for (size_t i = 0; i < placed.size(); ++i) {
      const Interval& each = blocks_[i];
      (each.room ? made_.rooms[*each.room].temporaries : made_.temporaries).push_back({placed[i], each.offset});
      if (each.room) use_room(*each.room, each);
    }
  }

  void use_room(size_t room, const Interval& block) {
    made_.rooms[room].used = std::max(made_.rooms[room].used, block.offset + block.bytes);
  }

  // Places the memories of the fusion's calls alone, in space that the plan leaves free during the item.
  void place_inner(uint32_t item) {
    const std::vector<uint32_t>& calls = fused_.items[item].calls;
    InnerMemory& made = made_.inner[fused_.items[item].fusion];
    std::map<uint32_t, Interval> inner;
    for (uint32_t i = 0; i < calls.size(); ++i)
      for_each_memory(trace_.calls[calls[i]], [&](uint32_t memory) {
        if (!is_used(memory)) inner.try_emplace(memory, Interval{bytes_of(memory), i, i}).first->second.last = i;
      });
    std::vector<uint64_t> rooms = room_bytes_;
    rooms.push_back(made_.arena_bytes);
    std::vector<Interval> blocks, fixed;
    for (const std::vector<Interval>* all : {&blocks_, &owners_})
      for (const Interval& each : *all)
        if (each.first <= item && item <= each.last)
          fixed.push_back(
              {each.bytes, 0, static_cast<uint32_t>(calls.size()), each.offset, each.room.value_or(room_bytes_.size())});
    for (const auto& [memory, interval] : inner) blocks.push_back(interval);
    made.spare = pack(blocks, alignment_, rooms, fixed);
    size_t at = 0;
    for (const auto& [memory, interval] : inner) {
      const Interval& block = blocks[at++];
      const auto room = static_cast<uint32_t>(block.room.value_or(InnerMemory::kSpare));
      const bool is_in_arena = block.room == room_bytes_.size();
      made.places.push_back({memory, block.offset, is_in_arena ? InnerMemory::kArena : room});
      if (block.room && !is_in_arena) use_room(room, block);
    }
  }

  void place_constants() {
    std::vector<Interval> blocks;
    for (uint32_t memory = 0; memory < trace_.memories.size(); ++memory) {
      if (!is_used(memory) || !simplified_.is(memory, Simplified::kConstant)) continue;
      blocks.push_back({bytes_of(memory), 0, 0});
      made_.constants.push_back({memory, 0});
    }
    made_.constant_bytes = pack(blocks, alignment_);
    for (size_t i = 0; i < blocks.size(); ++i) made_.constants[i].offset = blocks[i].offset;
  }

  const Trace& trace_;
  const Simplified& simplified_;
  const Fused& fused_;
  const uint64_t alignment_;
  std::vector<Interval> blocks_, owners_;  // of temporary memory, and of the rooms' own memories
  std::vector<uint64_t> room_bytes_;
  Placed made_;
};
}  // namespace

Placed place_memory(const Trace& trace, const Simplified& simplified, const Fused& fused, std::vector<uint32_t> row) {
  return MemoryPlacing(trace, simplified, fused).place_all(std::move(row));
}

}  // namespace plugrad::steps
