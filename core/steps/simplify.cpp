// Sorts the calls of a trace into calls of each replay, calls to run once, and unused calls.
#include <core/runtime/dispatch/op_table.hpp>
#include <core/steps/plan.hpp>

#include <algorithm>

namespace plugrad::steps {
namespace {
constexpr uint64_t kLargestConstant = 4096;  // bytes; a larger constant costs more memory than time

// Returns whether the call may be left out: it cannot fail on its operands' contents.
bool may_vanish(const Call& call) {
  if (call.host) return false;
  const OpInfo* const op = op_info(call.op.opcode);
  return op && op->shape != OpShape::indexing;
}

std::vector<uint8_t> find_roles(const Trace& trace, const std::vector<uint32_t>& bound) {
  std::vector<uint8_t> roles(trace.memories.size());
  for (const uint32_t each : bound) roles[each] |= Simplified::kBound;
  for (const Call& call : trace.calls)
    for (size_t i = 0; i < call.views.size(); ++i) {
      if (call.memories[i] == kNever) continue;
      if (call.writes(i)) roles[call.memories[i]] |= Simplified::kWritten;
      if (call.reads(i)) roles[call.memories[i]] |= Simplified::kRead;
    }
  return roles;
}

std::vector<bool> find_renumbered(const Trace& trace) {
  std::vector<bool> renumbered(trace.calls.size());
  for (const RecordedPart& each : trace.parts)
    std::fill(renumbered.begin() + each.first, renumbered.begin() + each.last, true);
  for (const LiftedOperand& each : trace.lifted) renumbered[each.call] = true;
  return renumbered;
}

// A constant is made by a single call, from numbers and constants alone, and never changes.
void find_constants(const Trace& trace, Simplified& made) {
  std::vector<uint32_t> writes(trace.memories.size());
  for (const Call& call : trace.calls)
    for (size_t i = 0; i < call.op.outputs; ++i) ++writes[call.memories[i]];
  for (size_t at = 0; at < trace.calls.size(); ++at) {
    const Call& call = trace.calls[at];
    bool constant = !call.host && !call.is_random() && !made.renumbered[at] && call.workspace == kNever;
    for (size_t i = 0; i < call.views.size() && constant; ++i) {
      const uint32_t memory = call.memories[i];
      if (memory == kNever) continue;
      const Memory& m = trace.memories[memory];
      if (!call.writes(i)) constant = made.is(memory, Simplified::kConstant);
      else constant = writes[memory] == 1 && !m.is_older() && !m.outlives() && m.bytes <= kLargestConstant;
    }
    for (size_t i = 0; i < call.op.outputs && constant; ++i) made.roles[call.memories[i]] |= Simplified::kConstant;
  }
}

// A call is used if its results are read or outlive the step, or if it may fail on its operands' contents.
std::vector<bool> find_used(const Trace& trace, const Simplified& made) {
  std::vector<bool> used(trace.calls.size()), needed(trace.memories.size());
  for (size_t at = trace.calls.size(); at-- > 0;) {
    const Call& call = trace.calls[at];
    used[at] = !may_vanish(call);
    for (size_t i = 0; i < call.op.outputs; ++i) {
      const uint32_t memory = call.memories[i];
      const Memory& m = trace.memories[memory];
      used[at] = used[at] || needed[memory] || m.is_older() || m.outlives() || made.is(memory, Simplified::kBound);
    }
    if (!used[at]) continue;
    for (const uint32_t memory : call.memories)
      if (memory != kNever) needed[memory] = true;
  }
  return used;
}
}  // namespace

Simplified simplify(const Trace& trace, const std::vector<uint32_t>& bound) {
  Simplified made;
  made.roles = find_roles(trace, bound);
  made.renumbered = find_renumbered(trace);
  find_constants(trace, made);
  const std::vector<bool> used = find_used(trace, made);
  for (uint32_t at = 0; at < trace.calls.size(); ++at) {
    const Call& call = trace.calls[at];
    const bool is_constant = !call.host && made.is(call.memories[0], Simplified::kConstant);
    if (!used[at]) ++made.unused;
    else (is_constant ? made.once : made.each_time).push_back(at);
  }
  return made;
}

}  // namespace plugrad::steps
