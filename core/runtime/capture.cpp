#include <core/runtime/trace.hpp>

#include <core/runtime/fork.hpp>
#include <core/runtime/op_table.hpp>
#include <core/runtime/profiling.hpp>
#include <core/runtime/registry.hpp>

#include <algorithm>

namespace plugrad::capture {
namespace {
ForkMutex captures_mutex;  // guards Storage::captured, and the memories of all recorders

std::vector<StepRecorder*>& recorders() {  // captures_mutex held
  static std::vector<StepRecorder*>& all = *new std::vector<StepRecorder*>;
  return all;
}

// Makes destroy take its slow path. The caller holds the mutex and a reference to the storage.
void mark(Storage& storage) {
  ++storage.captured;
  storage.drop = kStorageLists;
}
void unmark(Storage& storage) {
  if (--storage.captured) return;
  const bool slow = storage.large || storage.imported || storage.tracked || storage.device->compute;
  storage.drop = slow ? kStorageLists : storage.list;
}

void count_active(int by) {
  active += static_cast<uint32_t>(by);
  profiling::update_observed();
}
}  // namespace

Recorder::Recorder() {
  count_active(1);
  local().recorder = this;
}
Recorder::~Recorder() {
  if (local().recorder == this) local().recorder = nullptr;
  count_active(-1);
}

StepRecorder::StepRecorder() {
  for (DeviceState* each : Registry::get().opened()) offsets_.emplace_back(each, each->offset.load());
  std::swap(local().storages, aside_);
  const std::lock_guard lock(captures_mutex);
  recorders().push_back(this);
}

StepRecorder::~StepRecorder() { stop(); }

void StepRecorder::stop() noexcept {
  if (std::exchange(stopped_, true)) return;
  Local& l = local();
  l.recorder = nullptr;
  for (Magazine<Storage>& each : l.storages) each.forget();  // a lent block was popped at once
  std::swap(l.storages, aside_);
  const std::lock_guard lock(captures_mutex);
  std::erase(recorders(), this);
  for (const auto& [storage, memory] : memories_) unmark(const_cast<Storage&>(*storage));
}

Trace StepRecorder::finish() {
  {
    const std::lock_guard lock(captures_mutex);
    for (const auto& [storage, memory] : memories_)
      trace_.memories[memory].storage = Ref<Storage>::share(const_cast<Storage*>(storage));
  }
  stop();
  uploaded_.clear();
  for (const auto& [device, offset] : offsets_)
    if (device == trace_.device) trace_.first_draw = offset;
  if (trace_.device) trace_.draws = trace_.device->offset - trace_.first_draw;
  return std::move(trace_);
}

uint32_t StepRecorder::add(Storage& storage, uint32_t begin) {
  const auto memory = static_cast<uint32_t>(trace_.memories.size());
  trace_.memories.push_back({{}, storage.bytes, storage.offset, begin, kNever, false});
  if (memories_.insert_or_assign(&storage, memory).second) mark(storage);
  return memory;
}

uint32_t StepRecorder::memory_of(Storage& storage) {
  const std::lock_guard lock(captures_mutex);
  const auto found = memories_.find(&storage);
  return found == memories_.end() ? add(storage, kNever) : found->second;
}

bool StepRecorder::knows(const Storage& storage) const {
  const std::lock_guard lock(captures_mutex);
  return memories_.contains(&storage);
}

void StepRecorder::began(Storage& storage) {
  const std::lock_guard lock(captures_mutex);
  add(storage, calls());
}

void StepRecorder::fail(const std::string& why) {
  if (trace_.flaw.empty()) trace_.flaw = why;
}

void StepRecorder::ended(Storage& storage, bool by_its_thread) {
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
  throw_refused(("runs on " + trace_.device->name + " and on " + device.name).c_str(),
                "move its operands to one device, and give ops that the device lacks a function of their own");
}

void StepRecorder::ran(DeviceState& device, const plugrad_kernel* kernel, const plugrad_op& op, Storage* const* storages,
                       Storage* workspace) {
  require_one_device(device);
  Call call{kernel, op, {}, {}, {}, kNever, local().gradient_of};
  for (int i = 0; i < op.outputs + op.inputs; ++i) {
    call.views.push_back(*op.views[i]);
    call.memories.push_back(storages[i] ? memory_of(*storages[i]) : kNever);
  }
  if (op.attributes) {
    const auto* bytes = static_cast<const std::byte*>(op.attributes);
    call.attributes.assign(bytes, bytes + *static_cast<const uint32_t*>(op.attributes));
  }
  if (workspace) call.workspace = memory_of(*workspace);
  trace_.calls.push_back(std::move(call));
}

void StepRecorder::run_part(Part part) {
  const uint32_t first = calls();
  const uint64_t numbers = part.advance();
  part.repeat();
  trace_.parts.push_back({std::move(part), first, calls(), numbers});
}

// Such a storage becomes memory from outside.
bool StepRecorder::keeps_upload(Storage& to) {
  if (!ConstantUploads::depth) return false;
  uploaded_.push_back(Ref<Storage>::share(&to));
  const uint32_t memory = memory_of(to);
  trace_.memories[memory].begin = kNever;
  trace_.memories[memory].constant = true;
  return true;
}

void ended(Storage& storage) noexcept {
  const std::lock_guard lock(captures_mutex);
  for (StepRecorder* each : recorders()) each->ended(storage, local().recorder == each);
}

void ran_elsewhere(Storage* const* storages, int count) {
  const std::lock_guard lock(captures_mutex);
  for (StepRecorder* each : recorders())
    for (int i = 0; i < count; ++i)
      if (storages[i]) each->used_elsewhere(*storages[i]);
}

void throw_refused(const char* what, const char* instead) {
  Recorder* const recorder = local().recorder;
  const std::string why = std::string("the function of a compiled step ") + what;
  if (recorder) recorder->fail(why);
  throw Error(Code::invalid, "[compile] " + why + ", which a replay could not follow: " + instead);
}

void run_part(Part part) {
  if (Recorder* const recorder = local().recorder) return recorder->run_part(std::move(part));
  part.advance();
  part.repeat();
}

}  // namespace plugrad::capture
