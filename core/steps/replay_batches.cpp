// The calls of a replay that run as batches, such as the updates of all parameters.
#include <core/steps/replay.hpp>

#include <algorithm>

namespace plugrad::steps {

bool Replay::takes_batches_of(const Call& call) const {
  if (call.workspace != kNever || call.op.flags & PLUGRAD_ACCUMULATE) return false;
  return takes_batches(*trace_.device, lists_, call.kernel);
}

// A batch has calls of all shapes, a program calls of one shape.
void Replay::divide_batched() {
  std::vector<Step> steps;
  for (Step& step : steps_) {
    const bool is_batched =
        std::ranges::all_of(step.calls, [&](uint32_t at) { return takes_batches_of(trace_.calls[at]); });
    if (step.calls.size() == 1 || !is_batched) {
      steps.push_back(std::move(step));
      continue;
    }
    for (const uint32_t at : step.calls) steps.push_back({{at}, nullptr});
  }
  steps_ = std::move(steps);
}

// A batch is neighbours of one kernel, whose memory was in use before the first of them.
void Replay::find_batches(const Uses& uses) {
  const auto is_old = [&](uint32_t memory, uint32_t first) {
    return memory == kNever || trace_.memories[memory].is_older() || uses.first[memory] < first;
  };
  for (uint32_t first = 0, last = 0; first < items_.size(); first = last) {
    const auto joins = [&](const Item& each) {
      return each.program == kNever && each.kernel == items_[first].kernel && takes_batches_of(call_of(each)) &&
             std::ranges::all_of(call_of(each).memories, [&](uint32_t memory) { return is_old(memory, first); });
    };
    last = first + 1;
    if (!joins(items_[first])) continue;
    while (last < items_.size() && joins(items_[last])) ++last;
    if (last - first > 1) batches_.push_back({first, last});
  }
}

// Returns false if the calls have to run one by one.
bool Replay::run_batch(const ItemRange& batch) {
  std::vector<plugrad_list_call> calls;
  std::vector<Storage* const*> storages;
  for (uint32_t i = batch.first; i < batch.last; ++i) {
    calls.push_back({items_[i].kernel, &items_[i].op});
    storages.push_back(storages_.data() + items_[i].first);
  }
  reached_ = batch.first;
  return submit_batch(*trace_.device, {*lists_, calls, storages});
}

void Replay::run_in_order() {
  uint32_t next = 0;
  const auto run_until = [&](size_t end) {
    while (next < end) run_item(items_[next++]);
  };
  for (const ItemRange& each : batches_) {
    run_until(each.first);
    if (run_batch(each)) next = each.last;
  }
  run_until(items_.size());
}

}  // namespace plugrad::steps
