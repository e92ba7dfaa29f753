#include <core/steps/replay.hpp>

#include <core/runtime/dispatch.hpp>
#include <core/runtime/profiling.hpp>
#include <core/steps/digest.hpp>

#include <algorithm>
#include <sstream>

namespace plugrad::steps {

const Call& Replay::call_of(const Item& item) const {
  return item.program == kNever ? trace_.calls[item.call] : programs_[item.program].call.call;
}

// --- Memory.

// Makes an arena that is large enough. If it is not the one of the last run, binds all temporary memories to it.
void Replay::provide_arena() {
  if (temporaries_.empty()) return;
  DeviceState& device = *trace_.device;
  Ref<Storage>& storage = arena_->storage;
  if (!storage || storage->device != &device || storage->size < figures_.arena) {
    storage = {};
    storage = allocate(device, arena_->wanted, 0);
  }
  const Bound now{storage.get(), storage->buffer, storage->offset};
  if (arena_bound_ == now) return;
  arena_bound_ = now;
  for (const Temporary& each : temporaries_) bind(each.memory, *storage, storage->offset + each.offset);
}

void Replay::bind(uint32_t memory, Storage& storage, uint64_t base) {
  const Bound now{&storage, storage.buffer, base};
  if (bound_[memory] == now) return;
  bound_[memory] = now;
  const Followers& all = followers_[memory];
  for (const FollowingView& each : all.views) {
    each.view->buffer = storage.buffer;
    each.view->offset = base + each.offset;
  }
  for (Storage** each : all.storages) *each = &storage;
  for (plugrad_op* each : all.workspaces) {
    each->workspace = storage.buffer;
    each->workspace_offset = base;
  }
  for (const uint32_t each : all.items) note_changed(each);
}

void Replay::bind_room(size_t room, Storage& storage) {
  Room& it = rooms_[room];
  const Bound now{&storage, storage.buffer, storage.offset};
  if (it.bound == now) return;
  it.bound = now;
  for (const Temporary& each : it.lodgers) bind(each.memory, storage, storage.offset + each.offset);
}

// --- Running.

void Replay::throw_failed(const Item& item, plugrad_status status) {
  reached_ = item_of_call_[item.call];
  throw_status(status, op_label(item.op.opcode) + " on " + trace_.device->name + ", call " + std::to_string(item.call) +
                           " of a compiled step",
               take_report());
}

plugrad_status Replay::start(Item& item) {
  DeviceState& device = *trace_.device;
  if (!device.compute) return contained(item.kernel->run, item.kernel, nullptr, &item.op);
  reached_ = item_of_call_[item.call];  // submit may throw
  Storage* const* const storages = storages_.data() + item.first;
  const streams::Uses uses{{storages, item.op.outputs}, {storages + item.op.outputs, item.op.inputs}, item.overwrites};
  return streams::submit(*device.compute, op_name(item.op.opcode), uses, [&](uint64_t number) {
    item.op.number = number;
    return contained(item.kernel->run, item.kernel, device.compute->handle, &item.op);
  });
}

// What to do about the status of an item.
void Replay::settle(Item& item, plugrad_status status) {
  if (status == PLUGRAD_OK) [[likely]] return;
  if (status != PLUGRAD_UNSUPPORTED || item.program == kNever) throw_failed(item, status);
  take_report();
  run_singly(programs_[item.program]);
}

void Replay::run_item(Item& item) {
  if (profiling::is_on()) [[unlikely]] return run_observed(item);
  settle(item, start(item));
}

void Replay::run_observed(Item& item) {
  DeviceState& device = *trace_.device;
  const char* const outer = std::exchange(local().gradient_of, call_of(item).gradient_of);
  const OpCall call{item.op.opcode, item.op.outputs, item.op.inputs, item.op.views, storages_.data() + item.first,
                    item.op.attributes};
  plugrad_status status = PLUGRAD_OK;
  {
    const std::string name = item.program == kNever ? std::string() : "program of " + programs_[item.program].call.text;
    profiling::Scope scope(device, call, name);
    status = start(item);
    if (status == PLUGRAD_UNSUPPORTED) scope.drop();
    scope.complete(device.compute);
  }
  local().gradient_of = outer;
  settle(item, status);
}

// The kernel declined the program, perhaps for a while.
void Replay::run_singly(RunningProgram& program) {
  const Ref<Storage> spare = bind_inner(program);
  for (Item& each : program.singly) run_item(each);
}

// Returns the spare memory, which the calls need until they are submitted.
Ref<Storage> Replay::bind_inner(RunningProgram& program) {
  Ref<Storage> spare;
  if (program.spare) spare = allocate(*trace_.device, program.spare, 0);
  for (const Inner& each : program.inner) {
    const bool is_in_room = each.room < kArena;
    Storage& storage = is_in_room ? *rooms_[each.room].bound.storage : each.room == kArena ? *arena_->storage : *spare;
    bind(each.memory, storage, storage.offset + each.offset);
  }
  return spare;
}

void Replay::run() {
  DeviceState& device = *trace_.device;
  reached_ = 0;
  provide_arena();
  device.require_open();
  if (device.compute || profiling::is_on()) {
    if (profiling::is_on())
      for (Item& item : items_) run_item(item);
    else if (!run_list()) run_in_order();
  } else {
    for (Item& item : items_)
      if (const plugrad_status status = contained(item.kernel->run, item.kernel, nullptr, &item.op)) [[unlikely]]
        settle(item, status);
  }
  local().count_kernels(device.ordinal, items_.size());
}

bool Replay::missed(const RecordedPart& part) const {
  for (uint32_t call = part.first; call < part.last; ++call)
    if (item_of_call_[call] != kNever && item_of_call_[call] <= reached_) return false;
  return true;
}

// --- Checks.

// Adds those of calls whose results are in memory after the item ran.
void Replay::add_digests(const Item& item, std::vector<uint64_t>& digests) const {
  const auto add = [&](const Item& each) {
    digests[each.call] = digest_of(each.op.views, storages_.data() + each.first, each.op.outputs);
  };
  if (item.program == kNever) return add(item);
  const RunningProgram& program = programs_[item.program];
  const Call& stored = program.call.call;
  std::vector<uint32_t> left(stored.memories.begin(), stored.memories.begin() + stored.op.outputs);
  for (size_t i = program.singly.size(); i-- > 0;) {
    const Item& each = program.singly[i];
    const std::vector<uint32_t>& memories = trace_.calls[each.call].memories;
    bool is_stored = true;
    for (size_t k = 0; k < each.op.outputs; ++k) is_stored = std::erase(left, memories[k]) && is_stored;
    if (is_stored) add(each);
  }
}

// Runs the program's calls one by one, so that each shows what it writes, and then takes that back.
void Replay::rehearse_singly(RunningProgram& program, std::vector<uint64_t>& digests) {
  const Ref<Storage> spare = bind_inner(program);
  std::vector<Snapshot> before;
  std::vector<Storage*> written;
  for (const Item& each : program.singly)
    written.insert(written.end(), storages_.begin() + each.first, storages_.begin() + each.first + each.op.outputs);
  std::ranges::sort(written);
  written.erase(std::unique(written.begin(), written.end()), written.end());
  for (Storage* const each : written)
    if (each != spare.get()) before.emplace_back(*each);
  for (Item& each : program.singly) {
    run_item(each);
    add_digests(each, digests);
  }
  for (const Snapshot& each : before) each.put_back();
}

std::vector<uint64_t> Replay::run_with_digests() {
  provide_arena();
  trace_.device->require_open();
  std::vector<uint64_t> digests(trace_.calls.size());
  for (Item& item : items_) {
    if (item.program != kNever) rehearse_singly(programs_[item.program], digests);
    run_item(item);
    add_digests(item, digests);
  }
  return digests;
}

std::string Replay::text() const {
  std::ostringstream text;
  if (ran_as_list_) text << "\n    " << items_.size() << " calls run as one list";
  else
    for (const ItemRange& each : batches_)
      text << "\n    " << each.last - each.first << " calls of " << op_label(items_[each.first].op.opcode)
           << " run as one batch";
  for (const RunningProgram& each : programs_) text << "\n    program of " << each.call.text;
  for (const auto& [why, ops] : alone_) {
    text << "\n    alone, because " << why << ":";
    for (const auto& [op, count] : ops) text << " " << op << (count > 1 ? " (" + std::to_string(count) + ")" : "");
  }
  return text.str();
}

}  // namespace plugrad::steps
