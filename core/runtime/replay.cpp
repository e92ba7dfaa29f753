#include <core/runtime/replay.hpp>

#include <core/runtime/digest.hpp>
#include <core/runtime/dispatch.hpp>
#include <core/runtime/profiling.hpp>

#include <algorithm>

namespace plugrad::capture {
namespace {
constexpr uint64_t kLeastRoom = 64 << 10;  // of a block in which temporary memory lies: to bind it costs time
constexpr uint64_t kLargestConstant = 4096;  // a larger one costs more memory than time

uint64_t alignment_of(const DeviceState& device) { return std::max<uint64_t>(device.info.alignment, 64); }

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

Replay::Replay(Trace trace, std::span<const uint32_t> bound, std::shared_ptr<Arena> arena)
    : trace_(std::move(trace)), arena_(std::move(arena)) {
  figures_.calls = trace_.calls.size();
  followers_.resize(trace_.memories.size());
  bound_.resize(trace_.memories.size());
  find_roles(bound);
  find_constants();
  const std::vector<bool> used = find_used();
  make_items(used);
  const Uses uses = find_uses(used);
  place_temporaries(uses);
  place_constants(uses);
  bind_outside();
  run_items(once_);
}

void Replay::find_roles(std::span<const uint32_t> bound) {
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

// A constant is made by one call, of numbers and constants alone, and stays as it is.
void Replay::find_constants() {
  std::vector<uint32_t> writes(trace_.memories.size());
  for (const Call& call : trace_.calls)
    for (size_t i = 0; i < call.views.size(); ++i)
      if (call.writes(i)) ++writes[call.memories[i]];
  std::vector<bool> renumbered(trace_.calls.size());
  for (const RecordedPart& each : trace_.parts)
    std::fill(renumbered.begin() + each.first, renumbered.begin() + each.last, true);
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

void Replay::make_items(const std::vector<bool>& used) {
  size_t operands = 0;
  for (const Call& call : trace_.calls) operands += call.views.size();
  views_.reserve(operands);
  pointers_.reserve(operands);
  storages_.reserve(operands);
  operands_of_call_.assign(trace_.calls.size(), kNever);
  SharedViews shared;
  for (uint32_t at = 0; at < trace_.calls.size(); ++at) {
    const Call& call = trace_.calls[at];
    const bool constant = roles_[call.memories[0]] & kConstant;
    if (!used[at]) ++figures_.unused;
    else if (constant) ++figures_.once;
    if (used[at]) add_item(at, constant ? once_ : items_, shared);
    if (used[at] && is_random(call)) draws_.push_back(at);
  }
  for (std::vector<Item>* items : {&once_, &items_})  // they no longer move
    for (Item& item : *items) connect(item);
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

void Replay::add_item(uint32_t at, std::vector<Item>& items, SharedViews& shared) {
  const Call& call = trace_.calls[at];
  Item item{call.kernel, call.op, static_cast<uint32_t>(pointers_.size()), at, 0};
  operands_of_call_[at] = item.first;
  for (size_t i = 0; i < call.views.size(); ++i) {
    pointers_.push_back(view_for(call, i, shared));
    storages_.push_back(nullptr);
    // What memory has before the step does not matter where a call fills all of it.
    const plugrad_view& v = call.views[i];
    if (!call.writes(i) || trace_.memories[call.memories[i]].is_older() || v.layout & PLUGRAD_STRIDED) continue;
    const bool whole = static_cast<uint64_t>(v.count) * dtype_size(v.dtype) >= trace_.memories[call.memories[i]].bytes;
    if (whole && !is_in_out(call.op.opcode, static_cast<int>(i))) item.overwrites |= 1u << i;
  }
  items.push_back(item);
}

// Sets an item's pointers.
void Replay::connect(Item& item) {
  const Call& call = trace_.calls[item.call];
  item.op.views = pointers_.data() + item.first;
  item.op.attributes = call.attributes.empty() ? nullptr : call.attributes.data();
  for (uint32_t i = 0; i < call.views.size(); ++i)
    if (call.memories[i] != kNever) followers_[call.memories[i]].storages.push_back(&storages_[item.first + i]);
  if (call.workspace != kNever) followers_[call.workspace].workspaces.push_back(&item.op);
}

Replay::Uses Replay::find_uses(const std::vector<bool>& used) const {
  Uses uses{std::vector<uint32_t>(trace_.memories.size(), kNever), std::vector<uint32_t>(trace_.memories.size())};
  for (uint32_t at = 0; at < trace_.calls.size(); ++at) {
    if (!used[at]) continue;
    const Call& call = trace_.calls[at];
    const auto use = [&](uint32_t memory) {
      if (memory == kNever) return;
      uses.first[memory] = std::min(uses.first[memory], at);
      uses.last[memory] = at;
    };
    for (const uint32_t memory : call.memories) use(memory);
    use(call.workspace);
  }
  return uses;
}

// Temporary memory is what the step allocates and releases. Results and gradients have large blocks of their own, which are
// free until their first use.
void Replay::place_temporaries(const Uses& uses) {
  std::vector<Interval> blocks;
  std::vector<Room> rooms;
  std::vector<uint32_t> placed, owners;
  for (uint32_t memory = 0; memory < trace_.memories.size(); ++memory) {
    const Memory& m = trace_.memories[memory];
    if (uses.first[memory] == kNever || m.is_older() || roles_[memory] & kConstant) continue;
    if (!m.outlives() && !(roles_[memory] & kBound)) {
      blocks.push_back({m.bytes, uses.first[memory], uses.last[memory]});
      placed.push_back(memory);
      figures_.temporaries += m.bytes;
    } else if (m.bytes >= kLeastRoom) {
      rooms.push_back({m.bytes, uses.first[memory]});
      owners.push_back(memory);
    }
  }
  figures_.arena = place(blocks, alignment_of(*trace_.device), rooms);
  arena_->wanted = std::max(arena_->wanted, figures_.arena);
  lodgers_.resize(trace_.memories.size());
  for (size_t i = 0; i < blocks.size(); ++i)
    (blocks[i].room ? lodgers_[owners[*blocks[i].room]] : temporaries_).push_back({placed[i], blocks[i].offset});
}

void Replay::place_constants(const Uses& uses) {
  std::vector<Interval> blocks;
  std::vector<uint32_t> placed;
  for (uint32_t memory = 0; memory < trace_.memories.size(); ++memory) {
    if (uses.first[memory] == kNever || !(roles_[memory] & kConstant)) continue;
    blocks.push_back({trace_.memories[memory].bytes, 0, 0});
    placed.push_back(memory);
  }
  if (const uint64_t size = place(blocks, alignment_of(*trace_.device))) constants_ = allocate(*trace_.device, size, 0);
  for (size_t i = 0; i < placed.size(); ++i) bind(placed[i], *constants_, constants_->offset + blocks[i].offset);
}

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

void Replay::bind_outside() {
  for (uint32_t memory = 0; memory < trace_.memories.size(); ++memory) {
    const Memory& m = trace_.memories[memory];
    if (m.storage && !(roles_[memory] & kBound)) bind(memory, *m.storage, m.base);
  }
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
  for (const Temporary& each : lodgers_[memory]) bind(each.memory, storage, base + each.offset);
}

void Replay::throw_failed(const Item& item, plugrad_status status) {
  reached_ = item.call;
  throw_status(status, op_label(item.op.opcode) + " on " + trace_.device->name + ", call " + std::to_string(item.call) +
                           " of a compiled step",
               take_report());
}

plugrad_status Replay::submit(Item& item) {
  reached_ = item.call;  // submit may throw
  DeviceState& device = *trace_.device;
  Storage* const* const storages = storages_.data() + item.first;
  const streams::Uses uses{{storages, item.op.outputs}, {storages + item.op.outputs, item.op.inputs}, item.overwrites};
  return streams::submit(*device.compute, op_name(item.op.opcode), uses, [&](uint64_t number) {
    item.op.number = number;
    return contained(item.kernel->run, item.kernel, device.compute->handle, &item.op);
  });
}

void Replay::run_items(std::span<Item> items) {
  DeviceState& device = *trace_.device;
  device.require_open();
  if (profiling::is_on()) [[unlikely]] return run_observed(items);
  if (device.compute) {
    for (Item& item : items)
      if (const plugrad_status status = submit(item)) throw_failed(item, status);
  } else {
    for (const Item& item : items)
      if (const plugrad_status status = contained(item.kernel->run, item.kernel, nullptr, &item.op)) [[unlikely]]
        throw_failed(item, status);
  }
  local().count_kernels(device.ordinal, items.size());
}

void Replay::run_observed(std::span<Item> items) {
  DeviceState& device = *trace_.device;
  for (Item& item : items) {
    const char* const outer = std::exchange(local().gradient_of, trace_.calls[item.call].gradient_of);
    const OpCall call{item.op.opcode, item.op.outputs, item.op.inputs, item.op.views, storages_.data() + item.first,
                      item.op.attributes};
    plugrad_status status = PLUGRAD_OK;
    {
      profiling::Scope scope(device, call);
      status = device.compute ? submit(item) : contained(item.kernel->run, item.kernel, nullptr, &item.op);
      scope.complete(device.compute);
    }
    local().gradient_of = outer;
    if (status) throw_failed(item, status);
  }
  local().count_kernels(device.ordinal, items.size());
}

void Replay::run() {
  reached_ = 0;
  provide_arena();
  run_items(items_);
}

std::vector<uint64_t> Replay::run_with_digests() {
  provide_arena();
  std::vector<uint64_t> digests(trace_.calls.size());
  for (Item& item : items_) {
    std::span<Item> one(&item, 1);
    run_items(one);
    digests[item.call] = digest_of(item.op.views, storages_.data() + item.first, item.op.outputs);
  }
  return digests;
}

}  // namespace plugrad::capture
