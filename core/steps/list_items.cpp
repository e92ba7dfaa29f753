// Chooses the items to submit together: all items as a list, or neighbours as batches.
#include <core/runtime/memory/small_blocks.hpp>
#include <core/steps/plan.hpp>

#include <algorithm>

namespace plugrad::steps {
namespace {

// A batch is neighbouring items of the same kernel, with memory in use before the batch's first item.
std::vector<Listed::Batch> find_batches(const Trace& trace, const Fused& fused, const Uses& uses,
                                        const plugrad_lists* lists) {
  std::vector<Listed::Batch> batches;
  const auto is_old = [&](uint32_t memory, uint32_t first) {
    return memory == kNever || trace.memories[memory].is_older() || uses.first[memory] < first;
  };
  const auto items = static_cast<uint32_t>(fused.items.size());
  for (uint32_t first = 0, last = 0; first < items; first = last) {
    const plugrad_kernel* const kernel = fused.call_of(trace, first).kernel;
    const auto joins = [&](uint32_t item) {
      const Call& call = fused.call_of(trace, item);
      return fused.items[item].fusion == kNever && call.kernel == kernel && takes_batches_of(trace, call, lists) &&
             std::ranges::all_of(call.memories, [&](uint32_t memory) { return is_old(memory, first); });
    };
    last = first + 1;
    if (!joins(first)) continue;
    while (last < items && joins(last)) ++last;
    if (last - first > 1) batches.push_back({first, last});
  }
  return batches;
}

// The temporary memories in the arena count as a single memory. Temporary memory in a room is used before the room's own
// memory, and counts as a part of it.
void find_list_uses(const Trace& trace, const Fused& fused, const Placed& placed, Listed& made) {
  enum Where : uint8_t { kElsewhere, kInArena, kInRoom };
  std::vector<uint8_t> where(trace.memories.size());
  for (const MemoryPlace& each : placed.temporaries) where[each.memory] = kInArena;
  for (const Room& room : placed.rooms)
    for (const MemoryPlace& each : room.temporaries) where[each.memory] = kInRoom;
  std::vector<uint32_t> last(trace.memories.size(), kNever);  // the last item to write it
  std::vector<bool> used(trace.memories.size());
  std::optional<Listed::Written> arena;
  const auto note = [&](uint32_t memory, uint32_t item, bool writes) {
    if (memory == kNever) return;
    if (where[memory] == kInArena) arena = {memory, item, true};
    if (where[memory] != kElsewhere) return;
    used[memory] = true;
    if (writes) last[memory] = item;
  };
  for (uint32_t item = 0; item < fused.items.size(); ++item) {
    const Call& call = fused.call_of(trace, item);
    for (size_t k = 0; k < call.memories.size(); ++k) note(call.memories[k], item, call.writes(k));
    note(call.workspace, item, true);
  }
  for (uint32_t memory = 0; memory < used.size(); ++memory) {
    if (last[memory] != kNever) made.written.push_back({memory, last[memory], !trace.memories[memory].is_older()});
    else if (used[memory]) made.read.push_back(memory);
  }
  if (arena) made.written.push_back(*arena);
  std::ranges::stable_sort(made.written, {}, &Listed::Written::last);  // several memories may be in one storage
}
}  // namespace

bool takes_batches_of(const Trace& trace, const Call& call, const plugrad_lists* lists) {
  if (!lists || call.host || call.workspace != kNever || call.op.flags & PLUGRAD_ACCUMULATE) return false;
  return takes_batches(*trace.device, lists, call.kernel);
}

Listed list_items(const Trace& trace, const Fused& fused, const Placed& placed, const plugrad_lists* lists) {
  Listed made;
  if (!lists) return made;
  made.batches = find_batches(trace, fused, placed.uses, lists);
  const bool has_host = std::ranges::any_of(trace.calls, [](const Call& each) { return each.host != nullptr; });
  made.is_list = !has_host && fused.items.size() >= std::max(lists->least, 1u) && fused.items.size() <= UINT32_MAX;
  if (made.is_list) find_list_uses(trace, fused, placed, made);
  return made;
}

}  // namespace plugrad::steps
