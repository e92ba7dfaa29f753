#include <core/steps/trace.hpp>

#include <core/runtime/dispatch/op_table.hpp>
#include <core/runtime/fork.hpp>
#include <core/runtime/generator.hpp>
#include <core/runtime/memory/small_blocks.hpp>
#include <core/runtime/plugins/registry.hpp>

#include <cstring>

namespace plugrad::steps {
namespace {
// Makes destroy take its slow path. The caller holds the mutex and a reference to the storage.
void mark(Storage& storage) {
  ++storage.captured;
  storage.drop = kStorageLists;
}
void unmark(Storage& storage) {
  if (--storage.captured) return;
  const bool slow = storage.stand_in || storage.large || storage.imported || storage.tracked || storage.device->compute;
  storage.drop = slow ? kStorageLists : storage.list;
}
}  // namespace

StepRecorder::StepRecorder() {
  for (DeviceState* each : Registry::get().opened()) offsets_.emplace_back(each, generator_of(*each).offset.load());
  std::swap(local().storages, aside_);
}

void StepRecorder::start() {
  const std::lock_guard lock(observe::mutex());
  listen();
}

void StepRecorder::stop() noexcept {
  if (std::exchange(stopped_, true)) return;
  Local& l = local();
  l.observer = nullptr;
  for (Magazine<Storage>& each : l.storages) each.forget();  // a lent block was popped at once
  std::swap(l.storages, aside_);
  const std::lock_guard lock(observe::mutex());
  leave();
  for (const auto& [storage, memory] : memories_) unmark(const_cast<Storage&>(*storage));
}

Trace StepRecorder::finish() {
  {
    const std::lock_guard lock(observe::mutex());
    for (const auto& [storage, memory] : memories_)
      trace_.memories[memory].storage = Ref<Storage>::share(const_cast<Storage*>(storage));
  }
  stop();
  uploaded_.clear();
  for (const auto& [device, offset] : offsets_)
    if (device == trace_.device) trace_.first_draw = offset;
  if (trace_.device) trace_.draws = generator_of(*trace_.device).offset - trace_.first_draw;
  for (const Call& each : trace_.calls)
    if (each.host && trace_.flaw.empty()) trace_.flaw = each.host->flaw();
  return std::move(trace_);
}

uint32_t StepRecorder::add(Storage& storage, uint32_t begin) {
  const auto memory = static_cast<uint32_t>(trace_.memories.size());
  trace_.memories.push_back({{}, storage.bytes, storage.offset, begin, kNever, false});
  if (memories_.insert_or_assign(&storage, memory).second) mark(storage);
  return memory;
}

uint32_t StepRecorder::memory_of(Storage& storage) {
  const std::lock_guard lock(observe::mutex());
  const auto found = memories_.find(&storage);
  return found == memories_.end() ? add(storage, kNever) : found->second;
}

bool StepRecorder::knows(const Storage& storage) const {
  const std::lock_guard lock(observe::mutex());
  return memories_.contains(&storage);
}

void StepRecorder::allocated(Storage& storage) {
  if (paused_) return;
  const std::lock_guard lock(observe::mutex());
  add(storage, calls());
}

void StepRecorder::fail(const std::string& why) {
  if (!paused_ && trace_.flaw.empty()) trace_.flaw = why;
}

void StepRecorder::released(Storage& storage, bool by_its_thread) noexcept {
  const auto found = memories_.find(&storage);
  if (found == memories_.end()) return;
  if (by_its_thread) trace_.memories[found->second].end = calls();
  else fail("another thread released a tensor of the step");
  memories_.erase(found);
  unmark(storage);
}

void StepRecorder::used_elsewhere(const Storage& storage) {
  const auto found = memories_.find(&storage);
  if (found != memories_.end() && !trace_.memories[found->second].is_older())
    fail("another thread used a tensor of the step: keep its ops in one thread");
}

void StepRecorder::require_one_device(DeviceState& device) {
  if (!trace_.device) trace_.device = &device;
  if (trace_.device == &device) return;
  const std::string what = "runs on " + trace_.device->name + " and on " + device.name;
  observe::throw_unrepeatable(what.c_str(),
                              "move its operands to one device, and give ops that the device lacks a function of their own");
}

Call StepRecorder::call_of(const plugrad_kernel* kernel, const plugrad_op& op, Storage* const* storages) {
  Call call{kernel, op, {}, {}, {}, kNever, local().gradient_of};
  for (int i = 0; i < op.outputs + op.inputs; ++i) {
    call.views.push_back(*op.views[i]);
    call.memories.push_back(storages[i] ? memory_of(*storages[i]) : kNever);
  }
  return call;
}

void StepRecorder::ran(DeviceState& device, const plugrad_kernel* kernel, const plugrad_op& op, Storage* const* storages,
                       Storage* workspace) {
  if (paused_) return;
  require_one_device(device);
  Call call = call_of(kernel, op, storages);
  if (op.attributes) {
    const auto* bytes = static_cast<const std::byte*>(op.attributes);
    call.attributes.assign(bytes, bytes + *static_cast<const uint32_t*>(op.attributes));
  }
  if (workspace) call.workspace = memory_of(*workspace);
  if (observe::lifted.made) note_lifted(call);
  trace_.calls.push_back(std::move(call));
}

void StepRecorder::note_lifted(Call& call) {
  for (uint32_t i = 0; i < call.views.size(); ++i) {
    plugrad_view& view = call.views[i];
    if (!(view.layout & PLUGRAD_IMMEDIATE)) continue;
    uint32_t source = 0;
    std::memcpy(&source, view.reserved, sizeof source);
    if (!source) continue;
    std::memset(view.reserved, 0, sizeof view.reserved);
    ++observe::lifted.recorded;
    trace_.lifted.push_back({calls(), i, source});
  }
}

// Inside, the host may read and upload: the call does it again in each replay.
void StepRecorder::run_host(std::shared_ptr<observe::HostCall> host, DeviceState* device, const plugrad_op& op,
                            Storage* const* storages) {
  if (device) require_one_device(*device);
  Call call = call_of(nullptr, op, storages);
  call.host = std::move(host);
  {
    const observe::DoneOnce by_host;
    const struct Pause {
      explicit Pause(bool& p) : paused(p) { paused = true; }
      ~Pause() { paused = false; }
      bool& paused;
    } pause(paused_);
    call.host->run(op, storages);
  }
  trace_.calls.push_back(std::move(call));
}

void StepRecorder::run_part(Part part) {
  const uint32_t first = calls();
  const uint64_t numbers = part.advance();
  part.repeat();
  trace_.parts.push_back({std::move(part), first, calls(), numbers});
}

// Under ConstantUploads, the storage becomes memory from outside the step.
bool StepRecorder::keeps_upload(Storage& to) {
  if (paused_) return true;
  if (!observe::ConstantUploads::depth) return false;
  uploaded_.push_back(Ref<Storage>::share(&to));
  const uint32_t memory = memory_of(to);
  trace_.memories[memory].begin = kNever;
  trace_.memories[memory].constant = true;
  return true;
}

bool Call::reads(size_t operand) const { return !writes(operand) || is_in_out(op.opcode, static_cast<int>(operand)); }

bool Call::is_random() const {
  const OpInfo* const info = op_info(op.opcode);
  return info && info->shape == OpShape::random;
}

std::string Call::label() const { return host ? host->text() : op_label(op.opcode); }

}  // namespace plugrad::steps
