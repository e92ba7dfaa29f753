#include <core/runtime/dispatch/pending_ops.hpp>

#include <core/runtime/dispatch/extent.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace plugrad {
namespace {
// The ops as calls of a list, and the storages of their operands.
struct Calls {
  template <class All> explicit Calls(const All& all) {
    for (const auto* each : all) {
      calls.push_back({each->kernel, &each->op});
      storages.push_back(each->storages.data());
    }
  }
  std::vector<plugrad_list_call> calls;
  std::vector<Storage* const*> storages;
};
}  // namespace

bool PendingOps::takes(DeviceState& device, const plugrad_kernel* kernel) {
  if (kernel == kernel_) return is_taken_;
  kernel_ = kernel;
  return is_taken_ = takes_batches(device, lists_of(device), kernel);
}

bool PendingOps::keep(const OpCall& call) {
  DeviceState& device = *call.storages[0]->device;
  if (modes.load(std::memory_order_relaxed) & kObserved) return false;
  device.require_open();
  const plugrad_op op = call.op();
  const uint32_t attributes = call.attributes ? *static_cast<const uint32_t*>(call.attributes) : 0;
  uint16_t layout = 0;
  for (int i = 0; i < call.operands(); ++i) layout |= call.views[i]->layout;
  const plugrad_kernel* const kernel = device.kernel(op, call.key(), layout);
  if (!kernel || attributes > sizeof Pending::attributes || !takes(device, kernel)) return false;
  Pending& pending = all_.emplace_back();
  pending.device = &device;
  pending.kernel = kernel;
  pending.op = op;
  pending.layout = layout;
  for (int i = 0; i < call.operands(); ++i) {
    const auto k = static_cast<size_t>(i);
    pending.views[k] = *call.views[i];
    pending.storages[k] = call.storages[i];
    if (call.storages[i]) pending.held[k] = Ref<Storage>::share(call.storages[i]);
  }
  if (attributes) std::memcpy(pending.attributes.data(), call.attributes, attributes);
  return true;
}

bool PendingOps::use(const Storage& storage) const {
  const MemoryExtent its = extent_of(storage, false);
  const auto overlaps = [&](const Storage* other) { return other && extent_of(*other, false).overlaps(its); };
  return std::ranges::any_of(all_, [&](const Pending& each) {
    return std::any_of(each.storages.begin(), each.storages.begin() + each.op.outputs + each.op.inputs, overlaps);
  });
}

std::vector<size_t> PendingOps::run() {
  std::vector<Pending> all = std::exchange(all_, {});
  std::vector<Pending*> left;
  for (Pending& each : all) {
    for (size_t k = 0; k < kMost; ++k) each.pointers[k] = &each.views[k];
    each.op.views = each.pointers.data();
    if (each.op.attributes) each.op.attributes = each.attributes.data();
    left.push_back(&each);
  }
  const Calls calls(left);
  const bool are_batches = are_independent(calls.calls, calls.storages);
  std::vector<size_t> declined;
  const auto alone = [&](Pending* each) {
    if (!run_alone(*each)) declined.push_back(static_cast<size_t>(each - all.data()));
  };
  while (!left.empty()) {
    const plugrad_kernel* const kernel = left[0]->kernel;
    const auto others = are_batches ? std::stable_partition(left.begin(), left.end(),
                                                            [&](const Pending* each) { return each->kernel == kernel; })
                                    : left.begin() + 1;
    if (!run_as_batch({left.begin(), others})) std::for_each(left.begin(), others, alone);
    left.erase(left.begin(), others);
  }
  return declined;
}

bool PendingOps::run_as_batch(std::span<Pending* const> all) {
  if (all.size() < 2) return false;
  DeviceState& device = *all[0]->device;
  const Calls calls(all);
  if (!submit_batch(device, {*lists_of(device), calls.calls, calls.storages})) return false;
  local().count_kernels(device.ordinal, all.size());
  return true;
}

bool PendingOps::run_alone(Pending& pending) {
  const plugrad_op& op = pending.op;
  const OpCall call{op.opcode, op.outputs, op.inputs, op.views, pending.storages.data(), op.attributes};
  return run_without_kernel(*pending.device, call, pending.layout, PLUGRAD_OK);
}

}  // namespace plugrad
