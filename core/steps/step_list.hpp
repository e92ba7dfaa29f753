// Calls of a step as one list of the device (plugrad/sdk/list.h).
#pragma once
#include <core/runtime/dispatch/call_list.hpp>
#include <core/steps/operands.hpp>
#include <core/steps/plan.hpp>

#include <span>
#include <vector>

namespace plugrad::steps {

class StepList {
 public:
  // of: a list of the plan; both live as long as this object.
  StepList(const Plan& plan, const Listed::List& of);

  const Listed::List& list() const { return listed_; }
  bool is_offered() const { return is_offered_; }
  // Returns whether the list is made; until then run() needs the calls.
  bool is_made() const { return list_.is_made(); }
  // Notes a change of an item, or of all items with a memory, since the last run.
  void note_item(uint32_t item) {
    const uint32_t at = item - listed_.first;  // wraps for earlier items
    if (is_offered_ && item != kNever && at < count_) changed_[at / 64] |= uint64_t{1} << at % 64;
  }
  void note_memory(uint32_t memory) {
    if (!is_offered_) return;
    for (const uint32_t each : items_[memory]) note_item(each);
  }
  // Submits the list. Returns false if the items have to run singly. calls: of the items, unless the list is made.
  bool run(StreamState& stream, const Operands& operands, std::span<const plugrad_list_call> calls);

 private:
  plugrad_status make_or_run(StreamState& stream, std::span<const plugrad_list_call> calls, uint64_t first);

  const plugrad_lists* const lists_;
  const Listed::List& listed_;
  const uint32_t count_;
  bool is_offered_ = true;
  std::vector<std::vector<uint32_t>> items_;         // by memory: its items
  std::vector<uint64_t> changed_;                    // items, as a bit set
  std::vector<streams::ListUses::Written> written_;  // of the run
  std::vector<Storage*> read_;
  CallList list_;
};

}  // namespace plugrad::steps
