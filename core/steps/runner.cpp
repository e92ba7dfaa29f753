#include <core/steps/runner.hpp>

#include <core/runtime/cancel.hpp>
#include <core/runtime/dispatch/dispatch.hpp>
#include <core/runtime/observe/profiling.hpp>

#include <algorithm>
#include <sstream>

namespace plugrad::steps {

// --- Construction.

size_t Runner::count_operands(const Plan& plan) {
  size_t operands = 0;
  for (const Call& call : plan.trace.calls) operands += call.views.size();
  for (const FusedFusion& each : plan.fused.fusions) operands += each.call.call.views.size();
  for (const Form& each : plan.forms) operands += each.maker.views.size();
  return operands;
}

Runner::Runner(Plan plan, std::shared_ptr<Arena> arena)
    : plan_(std::move(plan)), operands_(plan_.trace.memories, count_operands(plan_)), arena_(std::move(arena)),
      room_bounds_(plan_.placed.rooms.size()) {
  for (const Listed::List& each : plan_.listed.lists) lists_.emplace_back(plan_, each);
  arena_->wanted = std::max(arena_->wanted, plan_.placed.arena_bytes);
  is_shared_work_ =
      std::ranges::any_of(plan_.trace.calls, [](const Call& each) { return each.host && each.host->has_effects(); });
  make_all();
  bind_constants();
  bind_captured();
  for (Running& each : once_) run_one(each);
}

void Runner::make_all() {
  const Trace& trace = plan_.trace;
  operands_of_call_.assign(trace.calls.size(), kNever);
  item_of_call_.assign(trace.calls.size(), kNever);
  singly_.resize(plan_.fused.fusions.size());
  for (const uint32_t at : plan_.simplified.once) once_.push_back(make(trace.calls[at], at));
  for (uint32_t item = 0; item < plan_.fused.items.size(); ++item) {
    const Item& planned = plan_.fused.items[item];
    for (const uint32_t at : planned.calls) {
      item_of_call_[at] = item;
      if (trace.calls[at].is_random()) draws_.push_back(at);
    }
    Running& made = items_.emplace_back(make(plan_.fused.call_of(trace, item), planned.calls[0]));
    if (planned.fusion == kNever) continue;
    made.fusion = planned.fusion;
    for (const uint32_t at : planned.calls) singly_[planned.fusion].push_back(make(trace.calls[at], at));
    for (const FusionCall::Number& each : plan_.fused.fusions[planned.fusion].call.numbers)
      numbers_[{each.call, each.operand}] = operands_.views(made.first)[made.op.outputs + each.input];
  }
  for (const Form& each : plan_.forms) makers_.push_back(make(each.maker, each.reader));
  for (std::vector<Running>* all : {&once_, &items_})
    for (Running& each : *all) connect(each, call_of(each));  // they no longer move
  for (std::vector<Running>& all : singly_)
    for (Running& each : all) connect(each, call_of(each));
  for (size_t i = 0; i < makers_.size(); ++i) connect(makers_[i], plan_.forms[i].maker);
}

// at: the call's place in the trace; of a fusion, the place of its first call.
Runner::Running Runner::make(const Call& call, uint32_t at) {
  Running made{call.kernel, call.op, operands_.add(call), at, 0};
  if (&call == &plan_.trace.calls[at]) operands_of_call_[at] = made.first;
  for (size_t i = 0; i < call.op.outputs; ++i) {
    // If a call fills a whole memory, the contents from before the step do not matter.
    const plugrad_view& v = call.views[i];
    const Memory& memory = plan_.trace.memories[call.memories[i]];
    if (memory.is_older() || v.layout & PLUGRAD_STRIDED) continue;
    const bool whole = static_cast<uint64_t>(v.count) * dtype_size(v.dtype) >= memory.bytes;
    if (whole && !call.reads(i)) made.overwrites |= 1u << i;
  }
  return made;
}

void Runner::connect(Running& one, const Call& call) {
  one.op.views = operands_.views(one.first);
  one.op.attributes = call.attributes.empty() ? nullptr : call.attributes.data();
  if (call.workspace != kNever) operands_.add_workspace(call.workspace, one.op);
  one.host = call.host.get();
}

// --- Memory.

void Runner::bind_constants() {
  if (plan_.placed.constant_bytes) constants_ = allocate(*plan_.trace.device, plan_.placed.constant_bytes, 0);
  for (const MemoryPlace& each : plan_.placed.constants) bind(each.memory, *constants_, constants_->offset + each.offset);
}

void Runner::bind_captured() {
  for (uint32_t memory = 0; memory < plan_.trace.memories.size(); ++memory) {
    const Memory& m = plan_.trace.memories[memory];
    if (m.storage && !plan_.simplified.is(memory, Simplified::kBound)) bind(memory, *m.storage, m.base);
  }
}

void Runner::make_forms() {
  for (size_t i = 0; i < makers_.size(); ++i) {
    Form& form = plan_.forms[i];
    const Storage& input = *where(form.input).storage;
    if (form.memory->is_fresh(input) || item_of_call_[form.reader] == kNever) continue;
    form.memory = refreshed(form, input, [&](Storage& to) {
      bind(form.place, to, to.offset);
      const plugrad_status status = start(makers_[i]);
      reached_ = 0;
      if (status != PLUGRAD_OK)
        throw_status(status, op_label(makers_[i].op.opcode) + " on " + plan_.trace.device->name + ", a form of its operand",
                     take_report());
    });
    keep_form(form);
  }
}

// The trace's memory follows the form.
void Runner::keep_form(const Form& form) {
  Ref<Storage>& held = plan_.trace.memories[form.place].storage;
  ++form.memory->storage->traces;
  --held->traces;
  held = form.memory->storage;
  bind(form.place, *held, held->offset);
}

// Provides a sufficient arena. If it differs from the arena of the last run, binds all temporary memories to it.
void Runner::provide_arena() {
  if (plan_.placed.temporaries.empty()) return;
  DeviceState& device = *plan_.trace.device;
  Ref<Storage>& storage = arena_->storage;
  if (!storage || storage->device != &device || storage->size < plan_.placed.arena_bytes) {
    storage = {};
    arena_->wanted = std::max(arena_->wanted, plan_.placed.arena_bytes);
    storage = allocate(device, arena_->wanted, 0);
  }
  const Bound now{storage.get(), storage->buffer, storage->offset};
  if (arena_bound_ == now) return;
  arena_bound_ = now;
  for (const MemoryPlace& each : plan_.placed.temporaries) bind(each.memory, *storage, storage->offset + each.offset);
}

void Runner::bind_room(size_t room, Storage& storage) {
  const Bound now{&storage, storage.buffer, storage.offset};
  if (room_bounds_[room] == now) return;
  room_bounds_[room] = now;
  for (const MemoryPlace& each : plan_.placed.rooms[room].temporaries)
    bind(each.memory, storage, storage.offset + each.offset);
}

// Returns the spare memory; the calls need it until they are submitted.
Ref<Storage> Runner::bind_inner(uint32_t fusion) {
  const InnerMemory& inner = plan_.placed.inner[fusion];
  Ref<Storage> spare;
  if (inner.spare) spare = allocate(*plan_.trace.device, inner.spare, 0);
  for (const InnerMemory::Place& each : inner.places) {
    Storage& storage = each.room == InnerMemory::kArena   ? *arena_->storage
                       : each.room == InnerMemory::kSpare ? *spare
                                                          : *room_bounds_[each.room].storage;
    bind(each.memory, storage, storage.offset + each.offset);
  }
  return spare;
}

// --- Running.

void Runner::throw_failed(const Running& one, plugrad_status status) {
  reached_ = item_of_call_[one.call];
  throw_status(status,
               op_label(one.op.opcode) + " on " + plan_.trace.device->name + ", call " + std::to_string(one.call) +
                   " of a compiled step",
               take_report());
}

plugrad_status Runner::start(Running& one) {
  DeviceState& device = *plan_.trace.device;
  if (!device.compute) return contained(one.kernel->run, one.kernel, nullptr, &one.op);
  reached_ = item_of_call_[one.call];  // submit may throw
  Storage* const* const storages = operands_.storages(one.first);
  const streams::Uses uses{{storages, one.op.outputs}, {storages + one.op.outputs, one.op.inputs}, one.overwrites};
  return streams::submit(*device.compute, op_name(one.op.opcode), uses, [&](uint64_t number) {
    one.op.number = number;
    return contained(one.kernel->run, one.kernel, device.compute->handle, &one.op);
  });
}

// Handles the status of a run: throws Error for a failure, and runs a declined fusion's calls singly.
void Runner::settle(Running& one, plugrad_status status) {
  if (status == PLUGRAD_OK) [[likely]]
    return;
  if (status != PLUGRAD_UNSUPPORTED || one.fusion == kNever) throw_failed(one, status);
  take_report();
  run_singly(one.fusion);
}

void Runner::run_host(Running& one) {
  reached_ = item_of_call_[one.call];
  one.host->run(one.op, operands_.storages(one.first));
}

void Runner::run_one(Running& one) {
  if (one.host) [[unlikely]]
    return run_host(one);
  if (profiling::is_on()) [[unlikely]]
    return run_observed(one);
  settle(one, start(one));
}

void Runner::run_observed(Running& one) {
  DeviceState& device = *plan_.trace.device;
  const char* const outer = std::exchange(local().gradient_of, call_of(one).gradient_of);
  const OpCall call{one.op.opcode,    one.op.outputs, one.op.inputs, one.op.views, operands_.storages(one.first),
                    one.op.attributes};
  plugrad_status status = PLUGRAD_OK;
  {
    const std::string name = one.fusion == kNever ? std::string() : "fusion of " + plan_.fused.fusions[one.fusion].call.text;
    profiling::Scope scope(device, call, name);
    status = start(one);
    if (status == PLUGRAD_UNSUPPORTED) scope.drop();
    scope.complete(device.compute);
  }
  local().gradient_of = outer;
  settle(one, status);
}

// The kernel declined the fusion, perhaps for a while.
void Runner::run_singly(uint32_t fusion) {
  const Ref<Storage> spare = bind_inner(fusion);
  for (Running& each : singly_[fusion]) run_one(each);
}

bool Runner::run_list(StepList& list) {
  if (!list.is_offered()) return false;
  const auto [first, last] = std::pair(list.list().first, list.list().last);
  std::vector<plugrad_list_call> calls;
  if (!list.is_made())
    for (uint32_t i = first; i < last; ++i) calls.push_back({items_[i].kernel, &items_[i].op});
  reached_ = first;
  if (!list.run(*plan_.trace.device->compute, operands_, calls)) return false;
  ++lists_run_;
  calls_in_lists_ += last - first;
  return true;
}

// Returns false if the calls have to run singly.
bool Runner::run_batch(const Listed::Batch& batch) {
  std::vector<plugrad_list_call> calls;
  std::vector<Storage* const*> storages;
  for (uint32_t i = batch.first; i < batch.last; ++i) {
    calls.push_back({items_[i].kernel, &items_[i].op});
    storages.push_back(operands_.storages(items_[i].first));
  }
  reached_ = batch.first;
  return submit_batch(*plan_.trace.device, {*plan_.lists, calls, storages});
}

// done: the last item that ran.
void Runner::end_if_cancelled(uint32_t done) {
  if (!may_be_cancelled() || is_shared_work_ || done + 1 == items_.size()) return;
  reached_ = done + 1;
  throw_if_cancelled();
}

void Runner::run_each(uint32_t first, uint32_t last) {
  for (uint32_t i = first; i < last; ++i) {
    run_one(items_[i]);
    end_if_cancelled(i);
  }
}

// Runs items, batches of them together.
void Runner::run_items(uint32_t first, uint32_t last) {
  for (const Listed::Batch& each : plan_.listed.batches) {
    if (each.first < first || each.last > last) continue;
    run_each(first, each.first);
    first = each.first;
    if (run_batch(each)) first = each.last;
  }
  run_each(first, last);
}

void Runner::run_in_order() {
  uint32_t next = 0;
  lists_run_ = calls_in_lists_ = 0;
  for (StepList& each : lists_) {
    run_items(next, each.list().first);
    next = each.list().last;
    if (run_list(each)) end_if_cancelled(next - 1);
    else run_items(each.list().first, next);
  }
  run_items(next, static_cast<uint32_t>(items_.size()));
}

void Runner::run() {
  DeviceState& device = *plan_.trace.device;
  reached_ = 0;
  provide_arena();
  device.require_open();
  make_forms();
  if (profiling::is_on() || (may_be_cancelled() && !device.compute)) {
    run_each(0, static_cast<uint32_t>(items_.size()));
  } else if (device.compute) {
    run_in_order();
  } else {
    for (Running& one : items_)
      if (one.host) [[unlikely]]
        run_host(one);
      else if (const plugrad_status status = contained(one.kernel->run, one.kernel, nullptr, &one.op)) [[unlikely]]
        settle(one, status);
  }
  local().count_kernels(device.ordinal, items_.size());
}

bool Runner::missed(const RecordedPart& part) const {
  for (uint32_t call = part.first; call < part.last; ++call)
    if (item_of_call_[call] != kNever && item_of_call_[call] < reached_) return false;
  return true;
}

std::string Runner::text() const {
  std::ostringstream text;
  if (lists_run_)
    text << "\n    " << calls_in_lists_ << " calls run as "
         << (lists_run_ == 1 ? "one list" : std::to_string(lists_run_) + " lists");
  else
    for (const Listed::Batch& each : plan_.listed.batches)
      text << "\n    " << each.last - each.first << " calls of " << call_of(items_[each.first]).label()
           << " run as one batch";
  for (const FusedFusion& each : plan_.fused.fusions) text << "\n    fusion of " << each.call.text;
  std::map<std::string, size_t> by_host;
  for (const Call& each : plan_.trace.calls)
    if (each.host) ++by_host[each.label()];
  for (const auto& [what, count] : by_host)
    text << "\n    by the host: " << what << (count > 1 ? " (" + std::to_string(count) + ")" : "");
  for (const auto& [why, ops] : plan_.fused.alone) {
    text << "\n    alone, because " << why << ":";
    for (const auto& [op, count] : ops) text << " " << op << (count > 1 ? " (" + std::to_string(count) + ")" : "");
  }
  return text.str();
}

}  // namespace plugrad::steps
