// Chooses the calls of a step to run as fusions.
#include <core/runtime/dispatch/fusion_kernels.hpp>
#include <core/runtime/dispatch/op_table.hpp>
#include <core/steps/plan.hpp>

#include <algorithm>
#include <iterator>

namespace plugrad::steps {
namespace {
constexpr uint32_t kSeveral = kNever - 1;

// Returns the only reading step of each memory, kSeveral, or kNever.
std::vector<uint32_t> find_readers(const Trace& trace, const std::vector<Step>& steps) {
  std::vector<uint32_t> readers(trace.memories.size(), kNever);
  for (uint32_t step = 0; step < steps.size(); ++step)
    for (const uint32_t at : steps[step].calls) {
      const Call& call = trace.calls[at];
      for (size_t i = 0; i < call.memories.size(); ++i) {
        if (call.memories[i] == kNever || !call.reads(i)) continue;
        uint32_t& reader = readers[call.memories[i]];
        reader = reader == kNever || reader == step ? step : kSeveral;
      }
    }
  return readers;
}

void replace(std::vector<Step>& steps, size_t step, std::vector<Step> by) {
  steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(step));
  steps.insert(steps.begin() + static_cast<std::ptrdiff_t>(step), std::make_move_iterator(by.begin()),
               std::make_move_iterator(by.end()));
}

// Writes a fusion for each step of several calls. Returns false if a step cannot be a fusion: its halves then replace it in
// `steps`.
bool write_fusions(const Trace& trace, const Simplified& simplified, const FusionLimits& limits, std::vector<Step>& steps,
                   Fused& made) {
  made.fusions.clear();
  const std::vector<uint32_t> readers = find_readers(trace, steps);
  for (uint32_t step = 0; step < steps.size(); ++step) {
    const Step& it = steps[step];
    if (!it.group) continue;
    const auto stays = [&](uint32_t memory) {
      const Memory& m = trace.memories[memory];
      const bool is_read_elsewhere = readers[memory] != kNever && readers[memory] != step;
      return m.is_older() || m.outlives() || simplified.is(memory, Simplified::kBound) || is_read_elsewhere;
    };
    std::optional<FusionCall> written = write_fusion(*it.group, {trace, simplified.renumbered, stays});
    size_t taken = it.calls.size();
    if (written && it.group->has_head()) taken = std::min(taken, fusion_reach(*trace.device, written->call.attributes));
    if (written && taken == it.calls.size()) written->call.kernel = fusion_kernel(*trace.device, written->call.attributes);
    if (written && written->call.kernel) {
      made.fusions.push_back({std::move(*written), it.calls});
      continue;
    }
    if (written && it.calls.size() == 2)
      for (const uint32_t at : it.calls)
        ++made.alone["the device has no kernel for the fusion of it"][trace.calls[at].label()];
    replace(steps, step, divided(it, trace, limits, taken < it.calls.size() ? std::max<size_t>(taken, 1) : 0));
    return false;
  }
  return true;
}

// A batch has calls of all shapes, a fusion calls of one shape.
std::vector<Step> without_batches(std::vector<Step> steps, const Trace& trace, const plugrad_lists* lists) {
  std::vector<Step> left;
  for (Step& step : steps) {
    const auto is_batched = [&](uint32_t at) { return takes_batches_of(trace, trace.calls[at], lists); };
    if (step.calls.size() == 1 || !std::ranges::all_of(step.calls, is_batched)) {
      left.push_back(std::move(step));
      continue;
    }
    for (const uint32_t at : step.calls) left.push_back({{at}, nullptr});
  }
  return left;
}

// The workspace becomes a memory of the trace.
void add_workspace(Call& fusion, const Trace& trace, std::vector<uint64_t>& workspaces) {
  std::vector<const plugrad_view*> views;
  for (const plugrad_view& each : fusion.views) views.push_back(&each);
  plugrad_op op = fusion.op;
  op.views = views.data();
  op.attributes = fusion.attributes.data();
  fusion.op.workspace_bytes = trace.device->workspace_bytes(*fusion.kernel, op);
  if (fusion.op.workspace_bytes == UINT64_MAX)
    throw Error(Code::out_of_memory, "[compile] out of host memory for a fusion on " + trace.device->name);
  if (!fusion.op.workspace_bytes) return;
  fusion.workspace = static_cast<uint32_t>(trace.memories.size() + workspaces.size());
  workspaces.push_back(fusion.op.workspace_bytes);
}
}  // namespace

Fused fuse(const Trace& trace, const Simplified& simplified, const FusionChoice& choice, const plugrad_lists* lists) {
  const auto offered = choice.allowed && trace.device ? fusions_of(*trace.device) : std::optional<plugrad_fusions>();
  FusionLimits limits;
  if (offered)
    limits = {offered->contents, choice.least.value_or(offered->least), choice.least.value_or(offered->least_headed),
              offered->longest_row};
  Schedule schedule = make_schedule(trace, simplified.each_time, offered ? &limits : nullptr);
  Fused made;
  made.reorders = std::ranges::any_of(schedule.steps, [](const Step& each) { return each.calls.size() > 1; });
  std::vector<Step> steps = without_batches(std::move(schedule.steps), trace, lists);
  if (choice.allowed) made.alone = std::move(schedule.alone);
  while (!write_fusions(trace, simplified, limits, steps, made)) {
  }
  for (FusedFusion& each : made.fusions) {
    made.fused += each.calls.size();
    add_workspace(each.call.call, trace, made.workspaces);
  }
  uint32_t fusion = 0;
  for (Step& each : steps) made.items.push_back({std::move(each.calls), each.group ? fusion++ : kNever});
  return made;
}

}  // namespace plugrad::steps
