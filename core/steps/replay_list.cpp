// The calls of a replay as one list, on devices whose plugin takes lists.
#include <core/steps/replay.hpp>

#include <algorithm>

namespace plugrad::steps {

void Replay::offer_list() {
  is_list_ = lists_ && items_.size() >= std::max(lists_->least, 1u) && items_.size() <= UINT32_MAX;
  if (!is_list_) return;
  changed_.assign((items_.size() + 63) / 64, ~uint64_t{0});
  for (uint32_t i = 0; i < items_.size(); ++i) {
    const Call& call = call_of(items_[i]);
    const auto follow = [&](uint32_t memory) {
      if (memory != kNever) followers_[memory].items.push_back(i);
    };
    for (const uint32_t memory : call.memories) follow(memory);
    follow(call.workspace);
  }
  find_list_uses();
}

// The temporary memories in the arena count as one. Those in memory that outlives the step come before its first use, so
// that counts for them.
void Replay::find_list_uses() {
  constexpr uint32_t kInArena = 1, kLodges = 2;
  std::vector<uint8_t> places(trace_.memories.size());
  for (const Temporary& each : temporaries_) places[each.memory] = kInArena;
  for (const Room& room : rooms_)
    for (const Temporary& each : room.lodgers) places[each.memory] = kLodges;
  std::vector<uint32_t> last(trace_.memories.size(), kNever);  // the item that writes it last
  std::vector<bool> used(trace_.memories.size());
  std::optional<ListMemory> arena;
  const auto note = [&](uint32_t memory, uint32_t item, bool writes) {
    if (memory == kNever) return;
    if (places[memory] == kInArena) arena = ListMemory{memory, item, true};
    if (places[memory]) return;
    used[memory] = true;
    if (writes) last[memory] = item;
  };
  for (uint32_t i = 0; i < items_.size(); ++i) {
    const Call& call = call_of(items_[i]);
    for (size_t k = 0; k < call.memories.size(); ++k) note(call.memories[k], i, call.writes(k));
    note(call.workspace, i, true);
  }
  for (uint32_t memory = 0; memory < used.size(); ++memory) {
    if (last[memory] != kNever) list_written_.push_back({memory, last[memory], !trace_.memories[memory].is_older()});
    else if (used[memory]) list_read_.push_back(memory);
  }
  if (arena) list_written_.push_back(*arena);
  std::ranges::stable_sort(list_written_, {}, &ListMemory::last);  // memories may lie in one storage
}

// Called with the stream's gate held, so it allocates nothing.
plugrad_status Replay::make_or_run_list(std::span<const plugrad_list_call> calls, uint64_t first) {
  if (!list_.is_made()) {
    const plugrad_status status = list_.make(*lists_, *trace_.device->compute, calls, 0);
    if (status == PLUGRAD_UNSUPPORTED) is_list_ = false;
    if (status != PLUGRAD_OK) return status;
    std::ranges::fill(changed_, 0);
  }
  return list_.run(first, changed_.data());
}

bool Replay::run_list() {
  if (!is_list_) return false;
  written_now_.clear();
  read_now_.clear();
  for (const ListMemory& each : list_written_)
    written_now_.push_back({bound_[each.memory].storage, each.last, each.is_fresh});
  for (const uint32_t memory : list_read_) read_now_.push_back(bound_[memory].storage);
  std::vector<plugrad_list_call> calls;
  if (!list_.is_made())
    for (const Item& each : items_) calls.push_back({each.kernel, &each.op});
  const streams::ListUses uses{written_now_, read_now_, static_cast<uint32_t>(items_.size())};
  const plugrad_status status =
      streams::submit_list(*trace_.device->compute, "compile", uses,
                           [&](uint64_t first) { return make_or_run_list(calls, first); });
  ran_as_list_ = status == PLUGRAD_OK;
  if (!ran_as_list_) {
    take_report();
    return false;
  }
  std::ranges::fill(changed_, 0);
  return true;
}

}  // namespace plugrad::steps
