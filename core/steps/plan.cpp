// All passes, in their order.
#include <core/runtime/dispatch/operand_forms.hpp>
#include <core/runtime/memory/small_blocks.hpp>  // plans end, and release storages
#include <core/steps/channels_last.hpp>
#include <core/steps/plan.hpp>

#include <utility>

namespace plugrad::steps {

Plan make_plan(Trace trace, Outside outside, const FusionChoice& choice) {
  Plan plan;
  if (trace.device && forms_of(*trace.device)) plan.recorded = trace.calls;
  plan.images = put_channels_last(trace, outside.all);
  plan.forms = take_forms(trace, outside.all);
  if (!plan.images && plan.forms.empty()) plan.recorded = {};
  plan.lists = trace.device ? lists_of(*trace.device) : nullptr;
  plan.simplified = simplify(trace, outside.all);
  plan.fused = fuse(trace, plan.simplified, choice, plan.lists);
  for (const uint64_t bytes : plan.fused.workspaces) trace.memories.push_back({{}, bytes, 0, 0, 0, false});
  plan.placed = place_memory(trace, plan.simplified, plan.fused, std::move(outside.row));
  plan.listed = list_items(trace, plan.fused, plan.placed, plan.lists);
  plan.trace = std::move(trace);
  return plan;
}

}  // namespace plugrad::steps
