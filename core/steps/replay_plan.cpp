// What a replay runs, and in which order.
#include <core/steps/replay.hpp>

#include <core/runtime/op_table.hpp>
#include <core/runtime/program_kernels.hpp>
#include <core/runtime/small_blocks.hpp>

#include <algorithm>
#include <iterator>
#include <memory>

namespace plugrad::steps {
namespace {
constexpr uint64_t kLargestConstant = 4096;  // a larger one costs more memory than time
constexpr uint32_t kSeveral = kNever - 1;

bool is_random(const Call& call) {
  const OpInfo* const op = op_info(call.op.opcode);
  return op && op->shape == OpShape::random;
}

// Whether it is no loss if the call does not run: it cannot fail on what its operands contain.
bool may_vanish(const Call& call) {
  const OpInfo* const op = op_info(call.op.opcode);
  return op && op->shape != OpShape::indexing;
}
}  // namespace

Replay::Replay(Trace trace, const Outside& outside, std::shared_ptr<Arena> arena, const ProgramChoice& programs)
    : trace_(std::move(trace)), arena_(std::move(arena)) {
  figures_.calls = trace_.calls.size();
  const std::vector<bool> renumbered = find_renumbered();
  find_roles(outside.all);
  find_constants(renumbered);
  find_steps(find_used(), renumbered, programs);
  roles_.resize(trace_.memories.size());
  followers_.resize(trace_.memories.size());
  bound_.resize(trace_.memories.size());
  make_items();
  const Uses uses = find_uses();
  const Places places = place_temporaries(uses, outside.row);
  for (RunningProgram& each : programs_) place_inner(each, uses, places);
  place_constants(uses);
  bind_outside();
  for (Item& each : once_) run_item(each);
  find_batches(uses);
  offer_list();
}

// --- What becomes of the calls.

void Replay::find_roles(const std::vector<uint32_t>& bound) {
  roles_.resize(trace_.memories.size());
  for (const uint32_t each : bound) roles_[each] |= kBound;
  for (const Call& call : trace_.calls) {
    for (size_t i = 0; i < call.views.size(); ++i) {
      if (call.memories[i] == kNever) continue;
      if (call.writes(i)) roles_[call.memories[i]] |= kWritten;
      if (!call.writes(i) || is_in_out(call.op.opcode, static_cast<int>(i))) roles_[call.memories[i]] |= kRead;
    }
  }
}

std::vector<bool> Replay::find_renumbered() const {
  std::vector<bool> renumbered(trace_.calls.size());
  for (const RecordedPart& each : trace_.parts)
    std::fill(renumbered.begin() + each.first, renumbered.begin() + each.last, true);
  return renumbered;
}

// A constant is made by one call, of numbers and constants alone, and stays as it is.
void Replay::find_constants(const std::vector<bool>& renumbered) {
  std::vector<uint32_t> writes(trace_.memories.size());
  for (const Call& call : trace_.calls)
    for (size_t i = 0; i < call.views.size(); ++i)
      if (call.writes(i)) ++writes[call.memories[i]];
  for (size_t at = 0; at < trace_.calls.size(); ++at) {
    const Call& call = trace_.calls[at];
    bool constant = !is_random(call) && !renumbered[at] && call.workspace == kNever;
    for (size_t i = 0; i < call.views.size() && constant; ++i) {
      const uint32_t memory = call.memories[i];
      if (memory == kNever) continue;
      const Memory& m = trace_.memories[memory];
      if (!call.writes(i)) constant = roles_[memory] & kConstant;
      else constant = writes[memory] == 1 && !m.is_older() && !m.outlives() && m.bytes <= kLargestConstant;
    }
    for (size_t i = 0; i < call.op.outputs && constant; ++i) roles_[call.memories[i]] |= kConstant;
  }
}

// A call is used if something reads what it writes, or its memory outlives the step.
std::vector<bool> Replay::find_used() const {
  std::vector<bool> used(trace_.calls.size()), needed(trace_.memories.size());
  for (size_t at = trace_.calls.size(); at-- > 0;) {
    const Call& call = trace_.calls[at];
    used[at] = !may_vanish(call);
    for (size_t i = 0; i < call.op.outputs; ++i) {
      const Memory& m = trace_.memories[call.memories[i]];
      used[at] = used[at] || needed[call.memories[i]] || m.is_older() || m.outlives() || roles_[call.memories[i]] & kBound;
    }
    if (!used[at]) continue;
    for (const uint32_t memory : call.memories)
      if (memory != kNever) needed[memory] = true;
  }
  return used;
}

// --- Steps: calls and programs.

void Replay::find_steps(const std::vector<bool>& used, const std::vector<bool>& renumbered, const ProgramChoice& choice) {
  std::vector<uint32_t> order;
  for (uint32_t at = 0; at < trace_.calls.size(); ++at) {
    const bool is_constant = roles_[trace_.calls[at].memories[0]] & kConstant;
    if (!used[at]) ++figures_.unused;
    else (is_constant ? once_calls_ : order).push_back(at);
  }
  figures_.once = once_calls_.size();
  const plugrad_programs* const offered = choice.allowed && trace_.device ? programs_of(*trace_.device) : nullptr;
  ProgramLimits limits;
  if (offered) limits = {offered->contents, choice.least.value_or(offered->least), offered->longest_row};
  Schedule schedule = make_schedule(trace_, order, offered ? &limits : nullptr);
  steps_ = std::move(schedule.steps);
  reorders_ = std::ranges::any_of(steps_, [](const Step& each) { return each.calls.size() > 1; });
  if (trace_.device) lists_ = lists_of(*trace_.device);
  if (lists_) divide_batched();
  if (choice.allowed) alone_ = std::move(schedule.alone);
  while (!write_programs(renumbered, limits)) programs_.clear();
  for (RunningProgram& each : programs_) {
    figures_.fused += each.calls.size();
    add_workspace(each.call.call);
  }
}

bool Replay::stays(uint32_t memory, uint32_t step, const std::vector<uint32_t>& readers) const {
  const Memory& m = trace_.memories[memory];
  const bool is_read_elsewhere = readers[memory] != kNever && readers[memory] != step;
  return m.is_older() || m.outlives() || roles_[memory] & kBound || is_read_elsewhere;
}

// Returns false if a group was no program: then steps_ has other groups in its place.
bool Replay::write_programs(const std::vector<bool>& renumbered, const ProgramLimits& limits) {
  std::vector<uint32_t> readers(trace_.memories.size(), kNever);
  for (uint32_t step = 0; step < steps_.size(); ++step)
    for (const uint32_t at : steps_[step].calls) {
      const Call& call = trace_.calls[at];
      for (size_t i = 0; i < call.memories.size(); ++i) {
        const bool reads = !call.writes(i) || is_in_out(call.op.opcode, static_cast<int>(i));
        if (call.memories[i] == kNever || !reads) continue;
        uint32_t& reader = readers[call.memories[i]];
        reader = reader == kNever || reader == step ? step : kSeveral;
      }
    }
  for (uint32_t step = 0; step < steps_.size(); ++step) {
    const Step& it = steps_[step];
    if (!it.group) continue;
    const auto memory_stays = [&](uint32_t memory) { return stays(memory, step, readers); };
    std::optional<ProgramCall> written = write_program(*it.group, {trace_, renumbered, memory_stays});
    if (written) written->call.kernel = program_kernel(*trace_.device, written->call.attributes);
    if (written && written->call.kernel) {
      programs_.push_back({std::move(*written), it.calls, {}, {}, 0});
      continue;
    }
    if (written && it.calls.size() == 2)
      for (const uint32_t at : it.calls)
        ++alone_["the device has no kernel for the program of it"][op_label(trace_.calls[at].op.opcode)];
    replace(step, divided(it, trace_, limits));
    return false;
  }
  return true;
}

void Replay::replace(size_t step, std::vector<Step> by) {
  steps_.erase(steps_.begin() + static_cast<std::ptrdiff_t>(step));
  steps_.insert(steps_.begin() + static_cast<std::ptrdiff_t>(step), std::make_move_iterator(by.begin()),
                std::make_move_iterator(by.end()));
}

void Replay::add_workspace(Call& program) {
  std::vector<const plugrad_view*> views;
  for (const plugrad_view& each : program.views) views.push_back(&each);
  plugrad_op op = program.op;
  op.views = views.data();
  op.attributes = program.attributes.data();
  program.op.workspace_bytes = trace_.device->workspace_bytes(*program.kernel, op);
  if (program.op.workspace_bytes == UINT64_MAX)
    throw Error(Code::out_of_memory, "[compile] out of host memory for a program on " + trace_.device->name);
  if (!program.op.workspace_bytes) return;
  program.workspace = static_cast<uint32_t>(trace_.memories.size());
  trace_.memories.push_back({{}, program.op.workspace_bytes, 0, 0, 0, false});
}

// --- Items.

void Replay::make_items() {
  size_t operands = 0;
  for (const Call& call : trace_.calls) operands += call.views.size();
  for (const RunningProgram& each : programs_) operands += each.call.call.views.size();
  views_.reserve(operands);
  pointers_.reserve(operands);
  storages_.reserve(operands);
  operands_of_call_.assign(trace_.calls.size(), kNever);
  item_of_call_.assign(trace_.calls.size(), kNever);
  SharedViews shared;
  for (const uint32_t at : once_calls_) once_.push_back(make_item(trace_.calls[at], at, shared));
  for (uint32_t step = 0, program = 0; step < steps_.size(); ++step) {
    const std::vector<uint32_t>& calls = steps_[step].calls;
    for (const uint32_t at : calls) {
      item_of_call_[at] = step;
      if (is_random(trace_.calls[at])) draws_.push_back(at);
    }
    if (steps_[step].group) make_program(program++, shared);
    else items_.push_back(make_item(trace_.calls[calls[0]], calls[0], shared));
  }
  for (Item& item : once_) connect(item);  // they no longer move
  for (Item& item : items_) connect(item);
  for (RunningProgram& each : programs_)
    for (Item& item : each.singly) connect(item);
  for (Step& each : steps_) each.group.reset();
}

void Replay::make_program(uint32_t program, SharedViews& shared) {
  RunningProgram& made = programs_[program];
  const Call& call = made.call.call;
  Item item = make_item(call, kNever, shared);
  item.call = made.calls[0];
  item.program = program;
  items_.push_back(item);
  for (const uint32_t at : made.calls) made.singly.push_back(make_item(trace_.calls[at], at, shared));
  for (const ProgramCall::Number& each : made.call.numbers)
    numbers_[{each.call, each.operand}] = pointers_[item.first + call.op.outputs + each.input];
}

// Operands with equal views of one memory share one object: a replay that reads less is faster.
plugrad_view* Replay::view_for(const Call& call, size_t operand, SharedViews& shared) {
  const plugrad_view& v = call.views[operand];
  const uint32_t memory = call.memories[operand];
  if (memory == kNever) return &views_.emplace_back(v);
  std::string key;
  const auto add = [&](const auto& value) { key.append(reinterpret_cast<const char*>(&value), sizeof value); };
  add(memory);
  add(v.offset);
  add(v.dtype);
  add(v.layout);
  for (int i = 0; i < v.rank; ++i) {
    add(v.shape[i]);
    add(v.strides[i]);
  }
  plugrad_view*& made = shared[key];
  if (made) return made;
  made = &views_.emplace_back(v);
  followers_[memory].views.push_back({made, v.offset - trace_.memories[memory].base});
  return made;
}

// at: the call's place in the trace, or kNever.
Replay::Item Replay::make_item(const Call& call, uint32_t at, SharedViews& shared) {
  Item item{call.kernel, call.op, static_cast<uint32_t>(pointers_.size()), at, 0};
  if (at != kNever) operands_of_call_[at] = item.first;
  for (size_t i = 0; i < call.views.size(); ++i) {
    pointers_.push_back(view_for(call, i, shared));
    storages_.push_back(nullptr);
    // What memory has before the step does not matter where a call fills all of it.
    const plugrad_view& v = call.views[i];
    if (!call.writes(i) || trace_.memories[call.memories[i]].is_older() || v.layout & PLUGRAD_STRIDED) continue;
    const bool whole = static_cast<uint64_t>(v.count) * dtype_size(v.dtype) >= trace_.memories[call.memories[i]].bytes;
    if (whole && !is_in_out(call.op.opcode, static_cast<int>(i))) item.overwrites |= 1u << i;
  }
  return item;
}

// Sets an item's pointers.
void Replay::connect(Item& item) {
  const Call& call = call_of(item);
  item.op.views = pointers_.data() + item.first;
  item.op.attributes = call.attributes.empty() ? nullptr : call.attributes.data();
  for (uint32_t i = 0; i < call.views.size(); ++i)
    if (call.memories[i] != kNever) followers_[call.memories[i]].storages.push_back(&storages_[item.first + i]);
  if (call.workspace != kNever) followers_[call.workspace].workspaces.push_back(&item.op);
}

}  // namespace plugrad::steps
