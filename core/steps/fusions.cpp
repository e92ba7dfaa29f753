#include <core/steps/fusions.hpp>

#include <core/runtime/dispatch/op_table.hpp>
#include <plugrad/sdk/fusion_block.hpp>

#include <algorithm>
#include <bit>
#include <span>

namespace plugrad::steps {
namespace {
bool is_immediate(const plugrad_view& view) { return view.layout & PLUGRAD_IMMEDIATE; }
bool is_dense(const plugrad_view& view) { return !(view.layout & PLUGRAD_STRIDED); }

// Returns the view with the extents of the call's space.
const plugrad_view& domain(const Call& call, OpShape shape) {
  return call.views[shape == OpShape::reduction ? call.op.outputs : 0];
}

// Returns why a call cannot be an instruction of a fusion, or null.
const char* obstacle(const Call& call, const FusionLimits& limits) {
  if (call.host) return "it is the host's";
  if (call.has_form) return "it reads a form of the device's own";
  const OpInfo* const op = op_info(call.op.opcode);
  if (!op) return "private ops run alone";
  const bool computes = op->shape == OpShape::elementwise || op->shape == OpShape::copy || op->opcode == PLUGRAD_OP_FILL;
  const bool reduces = op->shape == OpShape::reduction && op->opcode != PLUGRAD_OP_ARGMAX;
  const bool updates = op->shape == OpShape::update;
  const uint32_t head = head_content(op->opcode);
  if (!computes && !reduces && !updates && !head) return "it is not elementwise and not a sum";
  const uint32_t needed = head | (reduces * PLUGRAD_FUSION_REDUCTIONS) | (updates * PLUGRAD_FUSION_UPDATES);
  if (needed & ~limits.contents) return "the device's fusions do not contain it";
  if (call.op.flags & PLUGRAD_ACCUMULATE) return "it adds to its result";
  for (size_t i = 0; i < call.op.outputs; ++i)
    if (!is_dense(call.views[i])) return "its result is not dense";
  for (const plugrad_view& each : call.views)
    if (each.layout & PLUGRAD_NEGATIVE) return "an operand runs backwards";
  const plugrad_view& over = domain(call, op->shape);
  if (reduces && (!is_dense(over) || over.count == call.views[0].count)) return "its operand is not dense";
  return nullptr;
}

Key key_of(const plugrad_view& view, uint32_t memory, const plugrad_view& over, int rank) {
  Key key{memory, view.dtype, is_immediate(view) ? 0 : view.offset, {}};
  if (view.count == 1 || view.rank != over.rank) return key;
  int axis = 0;
  for (int d = 0; d < over.rank && axis < rank; ++d)
    if (over.shape[d] > 1) key.strides[axis++] = view.shape[d] > 1 ? view.strides[d] : 0;
  return key;
}
}  // namespace

// --- Spaces.

Space Space::of(const plugrad_view& view) {
  Space space;
  for (int d = 0; d < view.rank; ++d)
    if (view.shape[d] > 1) space.extents[space.rank++] = view.shape[d];
  return space;
}

int64_t Space::count() const {
  int64_t product = 1;
  for (int d = 0; d < rank; ++d) product *= extents[d];
  return product;
}

bool Space::ends_with(unsigned axes) const {
  const int first = std::countr_zero(axes);
  return axes && axes == (1u << rank) - (1u << first);
}

std::string Space::text() const {
  std::string text;
  for (int d = 0; d < rank; ++d) text += (d ? " x " : "") + std::to_string(extents[d]);
  return text;
}

unsigned Key::axes(int rank) const {
  unsigned axes = 0;
  for (int d = 0; d < rank; ++d) axes |= static_cast<unsigned>(!strides[d]) << d;
  return axes;
}

// --- Groups.

// The call's space must be the group's space, or the space of the rows to which the group has reduced an operand.
std::optional<Instruction> Group::instruction_of(const Trace& trace, uint32_t at) const {
  const Call& call = trace.calls[at];
  const plugrad_view& over = domain(call, op_info(call.op.opcode)->shape);
  const Space its = Space::of(over);
  unsigned reduced = 0;
  for (size_t i = 0; i < call.memories.size() && its != space_ && !reduced; ++i)
    if (const auto made = written_.find(call.memories[i]); made != written_.end()) reduced = made->second.axes(space_.rank);
  if (its != space_) {
    const OpShape shape = op_info(call.op.opcode)->shape;
    if (!reduced || shape == OpShape::reduction || shape == OpShape::update || !space_.ends_with(reduced)) return {};
    const int left = std::countr_zero(reduced);
    if (!left || its.rank != left) return {};
    if (!std::equal(its.extents.begin(), its.extents.begin() + left, space_.extents.begin())) return {};
  }
  Instruction made{at, {}};
  for (size_t i = 0; i < call.views.size(); ++i)
    made.keys.push_back(key_of(call.views[i], call.memories[i], over, its.rank));
  return made;
}

bool Group::may_read(const Trace& trace, const Instruction& i, size_t operand, const FusionLimits& limits) const {
  const Key& key = i.keys[operand];
  if (key.memory == kNever) return true;
  const auto made = written_.find(key.memory);
  if (made == written_.end()) {
    const bool is_reduced = op_info(trace.calls[i.call].op.opcode)->shape == OpShape::reduction;
    return std::ranges::all_of(key.strides, [](int64_t stride) { return stride >= 0; }) &&
           (is_reduced || space_.rank == 0 || key.strides[space_.rank - 1] <= 1);
  }
  if (made->second != key) return false;
  const unsigned axes = key.axes(space_.rank);
  if (!axes) return true;
  int64_t row = 1;
  for (int d = 0; d < space_.rank; ++d)
    if (axes >> d & 1) row *= space_.extents[d];
  const bool are_rows = space_.ends_with(axes) && !(axes & 1) && (!rows_ || rows_ == axes);
  return limits.contents & PLUGRAD_FUSION_ROWS && are_rows && static_cast<uint64_t>(row) <= limits.longest_row;
}

bool Group::may_write(const Trace& trace, const Instruction& i, size_t operand) const {
  const Key& key = i.keys[operand];
  if (const auto made = written_.find(key.memory); made != written_.end() && made->second != key) return false;
  if (const auto seen = read_.find(key.memory); seen != read_.end())
    if (std::ranges::any_of(seen->second, [&](const Key& each) { return each != key; })) return false;
  const std::vector<uint32_t>& memories = trace.calls[i.call].memories;
  for (size_t other = 0; other < memories.size(); ++other)
    if (other != operand && memories[other] == key.memory && i.keys[other] != key) return false;
  return true;
}

void Group::add_head(const Trace& trace, uint32_t at) {
  const Call& call = trace.calls[at];
  Instruction made{at, {}, true};
  for (size_t i = 0; i < call.views.size(); ++i) {
    made.keys.push_back(key_of(call.views[i], call.memories[i], call.views[0], space_.rank));
    if (i > 0) of_head_.insert(call.memories[i]);
  }
  written_.emplace(made.keys[0].memory, made.keys[0]);
  instructions_.push_back(std::move(made));
}

// Whether the call uses the result of the head, does not use its further results, and changes no operand of the head.
bool Group::may_follow_head(const Trace& trace, const Call& call) const {
  const OpShape shape = op_info(call.op.opcode)->shape;
  if (shape != OpShape::elementwise && shape != OpShape::copy) return false;
  const auto further = std::span(instructions_[0].keys).subspan(1, trace.calls[instructions_[0].call].op.outputs - 1u);
  bool reads_result = false;
  for (size_t i = 0; i < call.memories.size(); ++i) {
    const uint32_t memory = call.memories[i];
    if (call.writes(i) && of_head_.contains(memory)) return false;
    if (std::ranges::any_of(further, [&](const Key& each) { return each.memory == memory; })) return false;
    reads_result = reads_result || (!call.writes(i) && written_.contains(memory));
  }
  return reads_result;
}

bool Group::add(const Trace& trace, uint32_t at, const FusionLimits& limits) {
  if (instructions_.size() == PLUGRAD_FUSION_INSTRUCTIONS) return false;
  if (head_content(trace.calls[at].op.opcode)) {
    if (!instructions_.empty()) return false;
    add_head(trace, at);
    return true;
  }
  if (has_head() && !may_follow_head(trace, trace.calls[at])) return false;
  std::optional<Instruction> made = instruction_of(trace, at);
  if (!made) return false;
  const Call& call = trace.calls[at];
  unsigned rows = rows_;  // of all reduced inputs
  const bool reduces = op_info(call.op.opcode)->shape == OpShape::reduction;
  const unsigned reduced = reduces ? made->keys[0].axes(space_.rank) : reduced_;
  if (limits.contents & PLUGRAD_FUSION_ALIKE && reduced_ && reduced_ != reduced) return false;
  for (size_t i = 0; i < made->keys.size(); ++i) {
    if (!call.writes(i) && written_.contains(made->keys[i].memory)) {
      const unsigned axes = made->keys[i].axes(space_.rank);
      if (axes && rows && axes != rows) return false;
      rows = axes ? axes : rows;
    }
    const bool reads = !call.writes(i) || is_in_out(call.op.opcode, static_cast<int>(i));
    if ((reads && !may_read(trace, *made, i, limits)) || (call.writes(i) && !may_write(trace, *made, i))) return false;
  }
  for (size_t i = made->keys.size(); i-- > 0;) {  // inputs first
    const Key& key = made->keys[i];
    if (key.memory == kNever) continue;
    const bool known = written_.contains(key.memory);
    if (!known && (!call.writes(i) || is_in_out(call.op.opcode, static_cast<int>(i)))) read_[key.memory].push_back(key);
  }
  rows_ = rows;
  reduced_ = reduced;
  for (size_t i = 0; i < call.op.outputs; ++i) written_.insert_or_assign(made->keys[i].memory, made->keys[i]);
  instructions_.push_back(std::move(*made));
  return true;
}

// --- The schedule.

namespace {
class Scheduler {
 public:
  Scheduler(const Trace& trace, const FusionLimits* limits)
      : trace_(trace), limits_(limits), written_(trace.memories.size(), -1), read_(trace.memories.size(), -1) {}

  void place(uint32_t at) {
    const Call& call = trace_.calls[at];
    const char* const why = limits_ ? obstacle(call, *limits_) : "the device runs no fusions";
    const int64_t earliest = earliest_for(call);
    int64_t step = why ? -1 : find_group(at, earliest);
    if (step < 0) {
      step = static_cast<int64_t>(made.steps.size());
      made.steps.emplace_back();
      if (const char* const reason = why ? why : start_group(at); reason && !call.host) ++made.alone[reason][call.label()];
    }
    made.steps[static_cast<size_t>(step)].calls.push_back(at);
    note(call, step);
  }

  Schedule made;

 private:
  int64_t earliest_for(const Call& call) const {
    int64_t earliest = 0;
    for (size_t i = 0; i < call.memories.size(); ++i) {
      if (call.memories[i] == kNever) continue;
      earliest = std::max(earliest, written_[call.memories[i]]);
      if (call.writes(i)) earliest = std::max(earliest, read_[call.memories[i]]);
    }
    if (call.workspace != kNever) earliest = std::max({earliest, written_[call.workspace], read_[call.workspace]});
    return earliest;
  }

  // Returns the step of the first group that takes the call, or -1.
  int64_t find_group(uint32_t at, int64_t earliest) {
    for (auto step = static_cast<size_t>(earliest); step < made.steps.size(); ++step) {
      Group* const group = made.steps[step].group.get();
      if (group && group->add(trace_, at, *limits_)) return static_cast<int64_t>(step);
    }
    return -1;
  }

  // Returns why the call cannot begin a group, or null.
  const char* start_group(uint32_t at) {
    const Call& call = trace_.calls[at];
    const plugrad_view& over = domain(call, op_info(call.op.opcode)->shape);
    const uint64_t least = head_content(call.op.opcode) ? limits_->least_headed : limits_->least;
    if (static_cast<uint64_t>(over.count) < std::max<uint64_t>(least, 2)) return "it has few elements";
    auto group = std::make_unique<Group>(Space::of(over));
    if (!group->add(trace_, at, *limits_)) return "an operand is strided";
    made.steps.back().group = std::move(group);
    return nullptr;
  }

  void note(const Call& call, int64_t step) {
    const auto at_least = [&](int64_t& to) { to = std::max(to, step); };
    for (size_t i = 0; i < call.memories.size(); ++i)
      if (call.memories[i] != kNever) at_least(call.writes(i) ? written_[call.memories[i]] : read_[call.memories[i]]);
    if (call.workspace != kNever) at_least(written_[call.workspace]);
  }

  const Trace& trace_;
  const FusionLimits* const limits_;
  std::vector<int64_t> written_, read_;  // by memory: the last such step
};
}  // namespace

Schedule make_schedule(const Trace& trace, const std::vector<uint32_t>& order, const FusionLimits* limits) {
  Scheduler scheduler(trace, limits);
  for (const uint32_t call : order) scheduler.place(call);
  for (Step& step : scheduler.made.steps) {
    if (!step.group || step.calls.size() > 1) continue;
    step.group.reset();
    ++scheduler.made.alone["no call nearby has its shape"][op_label(trace.calls[step.calls[0]].op.opcode)];
  }
  return std::move(scheduler.made);
}

std::vector<Step> divided(const Step& step, const Trace& trace, const FusionLimits& limits, size_t first) {
  std::vector<Step> made;
  const size_t middle = first ? first : step.group->has_head() ? 1 : step.calls.size() / 2;
  for (size_t i = 0; i < step.calls.size(); ++i) {
    if (i > 0 && i != middle && made.back().group && made.back().group->add(trace, step.calls[i], limits)) {
      made.back().calls.push_back(step.calls[i]);
      continue;
    }
    made.emplace_back().calls.push_back(step.calls[i]);
    auto group = std::make_unique<Group>(step.group->space());
    if (group->add(trace, step.calls[i], limits)) made.back().group = std::move(group);
  }
  for (Step& each : made)
    if (each.calls.size() == 1) each.group.reset();
  return made;
}

}  // namespace plugrad::steps
