// The memory of a recording that outlives its replays.
#include <core/steps/recording.hpp>

#include <core/runtime/memory/small_blocks.hpp>
#include <core/steps/digest.hpp>

#include <algorithm>

namespace plugrad {
namespace {
constexpr int kMostFailures = 8;  // of a row, in succession: then its gradients are always allocated separately
}

void Recording::bind_arguments(const std::vector<Tensor>& arguments) {
  for (const ArgumentGroup& each : arguments_) {
    if (each.memory == steps::kNever) continue;
    const Tensor& first = arguments[each.first];
    runner_.bind(each.memory, *storage_of(first), view_of(first).offset - each.offset);
  }
}

// Whether a memory is a result's or a gradient's after the step.
bool Recording::outlives(uint32_t memory) const {
  return std::ranges::any_of(results_, [&](const StepView& each) { return each.memory == memory; }) ||
         std::ranges::any_of(gradients_, [&](const GradientPlace& each) { return each.after.memory == memory; });
}

bool Recording::is_used(uint32_t memory) const {
  return runner_.plan().reads(memory) || runner_.plan().writes(memory) || outlives(memory);
}

// Releases gradients that the step replaces without reading them, so that new gradients can reuse their memory.
void Recording::bind_gradients() {
  for (GradientPlace& each : gradients_) {
    if (!each.before.defined()) continue;
    const Tensor& grad = each.node->grad;
    const uint32_t memory = each.before.memory;
    if (is_used(memory)) {
      held_.push_back(grad.impl().storage);
      runner_.bind(memory, *held_.back(), view_of(grad).offset - each.before.view.offset);
    } else {
      each.node->grad = {};
    }
  }
}

// For a rehearsal around a run of the function, which changes gradients and must find no further owner of their memory.
void Recording::bind_gradient_copies() {
  for (GradientPlace& each : gradients_) {
    if (!each.before.defined() || !is_used(each.before.memory)) continue;
    const Tensor& grad = each.node->grad;
    Storage& storage = *storage_of(grad);
    const Ref<Storage>& copy = held_.emplace_back(allocate(*storage.device, storage.size, 0));
    steps::Snapshot(storage).put_back(*copy);
    runner_.bind(each.before.memory, *copy, view_of(grad).offset - each.before.view.offset - storage.offset + copy->offset);
  }
}

void Recording::find_rows() {
  const std::vector<steps::Room>& rooms = runner_.plan().placed.rooms;
  for (size_t room = 0; room < rooms.size(); ++room) {
    Row row{room, {}, {}};
    for (const uint32_t memory : rooms[room].memories) {
      const auto output = std::ranges::find(outputs_, memory, &Output::memory);
      row.outputs.push_back(static_cast<size_t>(output - outputs_.begin()));
      row.bytes.push_back(output->bytes);
    }
    rows_.push_back(std::move(row));
  }
}

// Returns false if there is no memory for the row.
bool Recording::take_row(Row& row) {
  if (row.failures == kMostFailures) return false;
  Allocator& allocator = runner_.plan().trace.device->allocator;
  std::vector<Ref<Storage>> taken = allocator.take_row(row.bytes, false);
  if (taken.empty() && arena_->rows) {
    --arena_->rows;
    taken = allocator.take_row(row.bytes, true);
  }
  row.failures = taken.empty() ? row.failures + 1 : 0;
  for (size_t i = 0; i < taken.size(); ++i) outputs_[row.outputs[i]].storage = std::move(taken[i]);
  return !taken.empty();
}

// apart: places no temporary memory in rows, so that no memory extends beyond its storage.
void Recording::bind_outputs(bool apart) {
  DeviceState& device = *runner_.plan().trace.device;
  for (Row& row : rows_) {
    if (row.outputs.size() == 1 || (!apart && take_row(row))) continue;
    if (const uint64_t used = runner_.plan().placed.rooms[row.room].used) row.spare = allocate(device, used, 0);
  }
  for (Output& each : outputs_) {
    if (!each.storage) each.storage = allocate(device, each.bytes, 0);
    runner_.bind(each.memory, *each.storage, each.storage->offset);
  }
  for (const Row& row : rows_) runner_.bind_room(row.room, row.spare ? *row.spare : *outputs_[row.outputs[0]].storage);
}

}  // namespace plugrad
