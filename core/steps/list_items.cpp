// Chooses the items to submit together: all items as a list, or neighbours as batches.
#include <core/runtime/memory/small_blocks.hpp>
#include <core/steps/plan.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <vector>

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

// Finds the uses of memory by items, some after others. The temporary memories in the arena count as a single memory, and
// temporary memory in a room as the room's own memories.
class ListUses {
 public:
  ListUses(const Trace& trace, const Fused& fused, const Placed& placed)
      : trace_(trace), fused_(fused), owners_(trace.memories.size()), before_(trace.memories.size()) {
    for (const MemoryPlace& each : placed.temporaries) owners_[each.memory] = {placed.temporaries[0].memory};
    for (const Room& room : placed.rooms)
      for (const MemoryPlace& each : room.temporaries) owners_[each.memory] = room.memories;
  }

  void find(Listed::List& list) {
    std::map<uint32_t, uint32_t> last;  // by memory: the last item to write it
    std::set<uint32_t> read;
    for (uint32_t item = list.first; item < list.last; ++item) {
      const Call& call = fused_.call_of(trace_, item);
      const auto note = [&](uint32_t memory, bool writes) {
        if (memory == kNever) return;
        const bool is_shared = !owners_[memory].empty();
        for (const uint32_t each : is_shared ? std::span<const uint32_t>(owners_[memory]) : std::span(&memory, 1)) {
          if (writes || is_shared) last[each] = item - list.first;
          else read.insert(each);
        }
      };
      for (size_t k = 0; k < call.memories.size(); ++k) note(call.memories[k], call.writes(k));
      note(call.workspace, true);
    }
    for (const auto& [memory, item] : last)
      list.written.push_back({memory, item, !trace_.memories[memory].is_older() && !before_[memory]});
    for (const uint32_t memory : read)
      if (!last.contains(memory)) list.read.push_back(memory);
    for (const auto& [memory, item] : last) before_[memory] = true;
    std::ranges::stable_sort(list.written, {}, &Listed::Written::last);  // several memories may be in one storage
  }

 private:
  const Trace& trace_;
  const Fused& fused_;
  std::vector<std::vector<uint32_t>> owners_;  // by memory: those that stand for it; empty: itself
  std::vector<bool> before_;                   // by memory: whether an earlier item writes it
};
}  // namespace

bool takes_batches_of(const Trace& trace, const Call& call, const plugrad_lists* lists) {
  if (!lists || call.host || call.workspace != kNever || call.op.flags & PLUGRAD_ACCUMULATE) return false;
  return takes_batches(*trace.device, lists, call.kernel);
}

Listed list_items(const Trace& trace, const Fused& fused, const Placed& placed, const plugrad_lists* lists) {
  Listed made;
  if (!lists) return made;
  made.batches = find_batches(trace, fused, placed.uses, lists);
  const auto items = static_cast<uint32_t>(fused.items.size());
  ListUses uses(trace, fused, placed);
  for (uint32_t first = 0, end = 0; first < items; first = end) {
    const bool is_host = fused.call_of(trace, first).host != nullptr;
    for (end = first + 1; !is_host && end < items && !fused.call_of(trace, end).host;) ++end;
    Listed::List list{first, end};
    uses.find(list);  // also of items that are no list: later lists depend on them
    if (!is_host && end - first >= lists->least) made.lists.push_back(std::move(list));
  }
  return made;
}

}  // namespace plugrad::steps
