#include <core/steps/step_list.hpp>

#include <core/runtime/local.hpp>
#include <core/runtime/streams/stream.hpp>

#include <algorithm>

namespace plugrad::steps {

StepList::StepList(const Plan& plan, const Listed::List& of)
    : lists_(plan.lists), listed_(of), count_(of.last - of.first), items_(plan.trace.memories.size()) {
  changed_.assign((count_ + 63) / 64, ~uint64_t{0});
  for (uint32_t item = of.first; item < of.last; ++item) {
    const Call& call = plan.fused.call_of(plan.trace, item);
    for (const uint32_t memory : call.memories)
      if (memory != kNever) items_[memory].push_back(item);
    if (call.workspace != kNever) items_[call.workspace].push_back(item);
  }
}

// Called with the stream's gate held, so it allocates nothing.
plugrad_status StepList::make_or_run(StreamState& stream, std::span<const plugrad_list_call> calls, uint64_t first) {
  if (!list_.is_made()) {
    const plugrad_status status = list_.make(*lists_, stream, calls, 0);
    if (status == PLUGRAD_UNSUPPORTED) is_offered_ = false;
    if (status != PLUGRAD_OK) return status;
    std::ranges::fill(changed_, 0);
  }
  return list_.run(first, changed_.data());
}

bool StepList::run(StreamState& stream, const Operands& operands, std::span<const plugrad_list_call> calls) {
  written_.clear();
  read_.clear();
  for (const Listed::Written& each : listed_.written)
    written_.push_back({operands.where(each.memory).storage, each.last, each.is_fresh});
  for (const uint32_t memory : listed_.read) read_.push_back(operands.where(memory).storage);
  const plugrad_status status = streams::submit_list(stream, "compile", {written_, read_, count_},
                                                     [&](uint64_t first) { return make_or_run(stream, calls, first); });
  if (status != PLUGRAD_OK) {
    take_report();
    return false;
  }
  std::ranges::fill(changed_, 0);
  return true;
}

}  // namespace plugrad::steps
