// The calls of a replay that a device takes in one submission, such as the updates of all parameters.
#include <core/runtime/foreign.hpp>
#include <core/steps/replay.hpp>

#include <algorithm>

namespace plugrad::steps {

bool Replay::is_taken(const Call& call) const {
  if (!together_ || call.workspace != kNever || call.op.flags & PLUGRAD_ACCUMULATE) return false;
  return contained_value(trace_.device->name, "takes",
                         [&] { return together_->takes(trace_.device->handle, call.kernel); });
}

// One submission takes the calls of all shapes, a program those of one.
void Replay::divide_taken() {
  std::vector<Step> steps;
  for (Step& step : steps_) {
    const bool is_taken_whole =
        std::ranges::all_of(step.calls, [&](uint32_t at) { return is_taken(trace_.calls[at]); });
    if (step.calls.size() == 1 || !is_taken_whole) {
      steps.push_back(std::move(step));
      continue;
    }
    for (const uint32_t at : step.calls) steps.push_back({{at}, nullptr});
  }
  steps_ = std::move(steps);
}

// Neighbours of one kernel, whose memory was in use before the first of them.
void Replay::find_companies(const Uses& uses) {
  const auto is_old = [&](uint32_t memory, uint32_t first) {
    return memory == kNever || trace_.memories[memory].is_older() || uses.first[memory] < first;
  };
  for (uint32_t first = 0, last = 0; first < items_.size(); first = last) {
    const auto joins = [&](const Item& each) {
      return each.program == kNever && each.kernel == items_[first].kernel && is_taken(call_of(each)) &&
             std::ranges::all_of(call_of(each).memories, [&](uint32_t memory) { return is_old(memory, first); });
    };
    last = first + 1;
    if (!joins(items_[first])) continue;
    while (last < items_.size() && joins(items_[last])) ++last;
    if (last - first > 1) companies_.push_back({first, last});
  }
}

// Returns false if they have to run one by one.
bool Replay::run_company(const Company& company) {
  std::vector<plugrad_op*> ops;
  std::vector<Storage* const*> storages;
  for (uint32_t i = company.first; i < company.last; ++i) {
    ops.push_back(&items_[i].op);
    storages.push_back(storages_.data() + items_[i].first);
  }
  reached_ = company.first;
  return submit_together(*trace_.device, {*together_, items_[company.first].kernel, ops, storages});
}

void Replay::run_in_order() {
  uint32_t next = 0;
  const auto run_until = [&](size_t end) {
    while (next < end) run_item(items_[next++]);
  };
  for (const Company& each : companies_) {
    run_until(each.first);
    if (run_company(each)) next = each.last;
  }
  run_until(items_.size());
}

}  // namespace plugrad::steps
