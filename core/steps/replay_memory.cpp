// Where the memory of a replay lies.
#include <core/steps/replay.hpp>

#include <core/runtime/small_blocks.hpp>

#include <algorithm>
#include <functional>
#include <map>

namespace plugrad::steps {
namespace {
constexpr uint64_t kLeastRoom = 64 << 10;  // of memory in which temporary memory lies: to bind it costs time
constexpr uint32_t kLastStep = kNever - 1;

uint64_t alignment_of(const DeviceState& device) { return std::max<uint64_t>(device.info.alignment, 64); }
}  // namespace

Replay::Uses Replay::find_uses() const {
  Uses uses{std::vector<uint32_t>(trace_.memories.size(), kNever), std::vector<uint32_t>(trace_.memories.size())};
  const auto use_all = [&](const Call& call, uint32_t step) {
    const auto use = [&](uint32_t memory) {
      if (memory == kNever) return;
      uses.first[memory] = std::min(uses.first[memory], step);
      uses.last[memory] = std::max(uses.last[memory], step);
    };
    for (const uint32_t memory : call.memories) use(memory);
    use(call.workspace);
  };
  for (const uint32_t at : once_calls_) use_all(trace_.calls[at], 0);
  for (uint32_t step = 0; step < items_.size(); ++step) use_all(call_of(items_[step]), step);
  // Should a program's calls run singly, they also use what only other steps need of the same memory.
  for (uint32_t step = 0; step < items_.size(); ++step) {
    if (items_[step].program == kNever) continue;
    for (const uint32_t at : programs_[items_[step].program].calls)
      for (const uint32_t memory : trace_.calls[at].memories) {
        if (memory == kNever || uses.first[memory] == kNever) continue;
        uses.first[memory] = std::min(uses.first[memory], step);
        uses.last[memory] = std::max(uses.last[memory], step);
      }
  }
  return uses;
}

void Replay::add_room(std::vector<uint32_t> memories, const Uses& uses, Places& places) {
  uint64_t bytes = 0;
  for (const uint32_t memory : memories) {
    const uint64_t size = memories.size() > 1 ? block_bytes(trace_.memories[memory].bytes) : trace_.memories[memory].bytes;
    places.owners.push_back({size, uses.first[memory], kLastStep, bytes, rooms_.size()});
    bytes += size;
  }
  places.rooms.push_back(bytes);
  rooms_.push_back({std::move(memories)});
}

// Temporary memory is what the step allocates and releases. Results and gradients have blocks of their own, which are free
// until their first use.
Replay::Places Replay::place_temporaries(const Uses& uses, std::vector<uint32_t> row) {
  Places places;
  uint64_t row_bytes = 0;
  std::erase_if(row, [&](uint32_t each) {
    const Memory& m = trace_.memories[each];
    return uses.first[each] == kNever || m.is_older() || m.bytes <= kLargestSmall;
  });
  for (const uint32_t each : row) row_bytes += trace_.memories[each].bytes;
  std::ranges::stable_sort(row, std::greater(), [&](uint32_t each) { return uses.first[each]; });
  if (row_bytes >= kLeastRoom) add_room(row, uses, places);
  std::vector<uint32_t> placed;
  for (uint32_t memory = 0; memory < trace_.memories.size(); ++memory) {
    const Memory& m = trace_.memories[memory];
    if (uses.first[memory] == kNever || m.is_older() || roles_[memory] & kConstant) continue;
    const bool is_bound = roles_[memory] & kBound;
    if (!m.outlives() && !is_bound) {
      places.temporaries.push_back({m.bytes, uses.first[memory], uses.last[memory]});
      placed.push_back(memory);
      figures_.temporaries += m.bytes;
    } else if (is_bound && m.bytes >= kLeastRoom && std::ranges::find(row, memory) == row.end()) {
      add_room({memory}, uses, places);
    }
  }
  figures_.arena = place(places.temporaries, alignment_of(*trace_.device), places.rooms, places.owners);
  arena_->wanted = std::max(arena_->wanted, figures_.arena);
  for (size_t i = 0; i < placed.size(); ++i) {
    const Interval& each = places.temporaries[i];
    (each.room ? rooms_[*each.room].lodgers : temporaries_).push_back({placed[i], each.offset});
    if (each.room) rooms_[*each.room].use(each);
  }
  return places;
}

// Memory that only calls inside of the program need, should they run singly: where the plan leaves room in that step.
void Replay::place_inner(RunningProgram& program, const Uses& uses, const Places& places) {
  std::map<uint32_t, Interval> inner;
  const auto calls = static_cast<uint32_t>(program.calls.size());
  for (uint32_t i = 0; i < calls; ++i) {
    const auto use = [&](uint32_t memory) {
      if (memory == kNever || uses.first[memory] != kNever) return;
      inner.try_emplace(memory, Interval{trace_.memories[memory].bytes, i, i}).first->second.last = i;
    };
    const Call& call = trace_.calls[program.calls[i]];
    for (const uint32_t memory : call.memories) use(memory);
    use(call.workspace);
  }
  const uint32_t step = item_of_call_[program.calls[0]];
  std::vector<uint64_t> rooms = places.rooms;
  rooms.push_back(figures_.arena);
  std::vector<Interval> blocks, fixed;
  for (const std::vector<Interval>* all : {&places.temporaries, &places.owners})
    for (const Interval& each : *all)
      if (each.first <= step && step <= each.last)
        fixed.push_back({each.bytes, 0, calls, each.offset, each.room.value_or(places.rooms.size())});
  for (const auto& [memory, interval] : inner) blocks.push_back(interval);
  program.spare = place(blocks, alignment_of(*trace_.device), rooms, fixed);
  size_t at = 0;
  for (const auto& [memory, interval] : inner) {
    const Interval& block = blocks[at++];
    const uint32_t room = block.room == places.rooms.size() ? kArena : static_cast<uint32_t>(block.room.value_or(kSpare));
    program.inner.push_back({memory, block.offset, room});
    if (room < kArena) rooms_[room].use(block);
  }
}

void Replay::place_constants(const Uses& uses) {
  std::vector<Interval> blocks;
  std::vector<uint32_t> placed;
  for (uint32_t memory = 0; memory < trace_.memories.size(); ++memory) {
    if (uses.first[memory] == kNever || !(roles_[memory] & kConstant)) continue;
    blocks.push_back({trace_.memories[memory].bytes, 0, 0});
    placed.push_back(memory);
  }
  if (const uint64_t size = place(blocks, alignment_of(*trace_.device))) constants_ = allocate(*trace_.device, size, 0);
  for (size_t i = 0; i < placed.size(); ++i) bind(placed[i], *constants_, constants_->offset + blocks[i].offset);
}

void Replay::bind_outside() {
  for (uint32_t memory = 0; memory < trace_.memories.size(); ++memory) {
    const Memory& m = trace_.memories[memory];
    if (m.storage && !(roles_[memory] & kBound)) bind(memory, *m.storage, m.base);
  }
}

}  // namespace plugrad::steps
