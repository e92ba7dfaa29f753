#include <core/runtime/kept_ops.hpp>

#include <core/runtime/extent.hpp>
#include <core/runtime/foreign.hpp>
#include <core/runtime/stream.hpp>

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

namespace plugrad {
namespace {
// A use of memory by an op.
struct Use {
  MemoryExtent extent;
  Storage* storage;
};

void add_uses(std::vector<Use>& uses, const plugrad_op& op, Storage* const* storages, uint32_t at) {
  for (uint16_t k = 0; k < op.outputs + op.inputs; ++k)
    if (storages[k]) uses.push_back({extent_of(*storages[k], k < op.outputs, at), storages[k]});
}

bool are_independent(const std::vector<Use>& uses) {
  std::vector<MemoryExtent> extents;
  for (const Use& each : uses) extents.push_back(each.extent);
  return plugrad::are_independent(extents);
}
}  // namespace

const plugrad_together* together_of(const DeviceState& device) {
  if (!device.compute) return nullptr;
  const auto* found = static_cast<const plugrad_together*>(extension_of(device.table, PLUGRAD_TOGETHER));
  if (found && (found->struct_size < sizeof *found || !found->takes || !found->run))
    throw_breach(device.name, "the list of '" PLUGRAD_TOGETHER "' is incomplete");
  return found;
}

bool submit_together(DeviceState& device, const OpsOfKernel& all) {
  const auto count = static_cast<uint32_t>(all.ops.size());
  std::vector<Use> uses;
  for (uint32_t at = 0; at < count; ++at) add_uses(uses, *all.ops[at], all.storages[at], at);
  if (!are_independent(uses)) return false;
  std::ranges::sort(uses, {}, [](const Use& each) { return std::tuple(each.storage, each.extent.user); });
  std::vector<streams::ListUses::Written> written;
  std::vector<Storage*> read;
  for (const Use& each : uses) {
    if (each.extent.is_written) written.push_back({each.storage, each.extent.user, false});
    else if (read.empty() || read.back() != each.storage) read.push_back(each.storage);
  }
  const char* const name = op_name(all.ops[0]->opcode);
  const plugrad_status status = streams::submit_list(*device.compute, name, {written, read, count}, [&](uint64_t first) {
    for (uint32_t i = 0; i < count; ++i) all.ops[i]->number = first + i;
    return contained(all.offered.run, all.kernel, device.compute->handle, all.ops.data(), count);
  });
  if (status != PLUGRAD_OK) take_report();
  return status == PLUGRAD_OK;
}

bool KeptOps::takes(DeviceState& device, const plugrad_kernel* kernel) {
  if (kernel == kernel_) return is_taken_;
  const plugrad_together* const offered = together_of(device);
  kernel_ = kernel;
  is_taken_ = offered && !kernel->workspace &&
              contained_value(device.name, "takes", [&] { return offered->takes(device.handle, kernel); });
  return is_taken_;
}

bool KeptOps::keep(const OpCall& call) {
  DeviceState& device = *call.storages[0]->device;
  if (modes.load(std::memory_order_relaxed) & kObserved) return false;
  device.require_open();
  const plugrad_op op = call.op();
  const uint32_t attributes = call.attributes ? *static_cast<const uint32_t*>(call.attributes) : 0;
  uint16_t layout = 0;
  for (int i = 0; i < call.operands(); ++i) layout |= call.views[i]->layout;
  const plugrad_kernel* const kernel = device.kernel(op, call.key(), layout);
  if (!kernel || attributes > sizeof Kept::attributes || !takes(device, kernel)) return false;
  Kept& kept = all_.emplace_back();
  kept.device = &device;
  kept.kernel = kernel;
  kept.op = op;
  kept.layout = layout;
  for (int i = 0; i < call.operands(); ++i) {
    const auto k = static_cast<size_t>(i);
    kept.views[k] = *call.views[i];
    kept.storages[k] = call.storages[i];
    if (call.storages[i]) kept.held[k] = Ref<Storage>::share(call.storages[i]);
  }
  if (attributes) std::memcpy(kept.attributes.data(), call.attributes, attributes);
  return true;
}

bool KeptOps::use(const Storage& storage) const {
  const MemoryExtent its = extent_of(storage, false);
  const auto overlaps = [&](const Storage* other) { return other && extent_of(*other, false).overlaps(its); };
  return std::ranges::any_of(all_, [&](const Kept& each) {
    return std::any_of(each.storages.begin(), each.storages.begin() + each.op.outputs + each.op.inputs, overlaps);
  });
}

std::vector<size_t> KeptOps::run() {
  std::vector<Kept> all = std::exchange(all_, {});
  std::vector<Kept*> left;
  std::vector<Use> uses;
  for (Kept& each : all) {
    for (size_t k = 0; k < kMost; ++k) each.pointers[k] = &each.views[k];
    each.op.views = each.pointers.data();
    if (each.op.attributes) each.op.attributes = each.attributes.data();
    add_uses(uses, each.op, each.storages.data(), static_cast<uint32_t>(left.size()));
    left.push_back(&each);
  }
  const bool together = are_independent(uses);
  std::vector<size_t> declined;
  const auto alone = [&](Kept* each) {
    if (!run_alone(*each)) declined.push_back(static_cast<size_t>(each - all.data()));
  };
  while (!left.empty()) {
    const plugrad_kernel* const kernel = left[0]->kernel;
    const auto others = together ? std::stable_partition(left.begin(), left.end(),
                                                         [&](const Kept* each) { return each->kernel == kernel; })
                                 : left.begin() + 1;
    if (!run_together({left.begin(), others})) std::for_each(left.begin(), others, alone);
    left.erase(left.begin(), others);
  }
  return declined;
}

bool KeptOps::run_together(std::span<Kept* const> all) {
  if (all.size() < 2) return false;
  DeviceState& device = *all[0]->device;
  std::vector<plugrad_op*> ops;
  std::vector<Storage* const*> storages;
  for (Kept* each : all) {
    ops.push_back(&each->op);
    storages.push_back(each->storages.data());
  }
  if (!submit_together(device, {*together_of(device), all[0]->kernel, ops, storages})) return false;
  local().count_kernels(device.ordinal, all.size());
  return true;
}

bool KeptOps::run_alone(Kept& kept) {
  const plugrad_op& op = kept.op;
  const OpCall call{op.opcode, op.outputs, op.inputs, op.views, kept.storages.data(), op.attributes};
  return run_without_kernel(*kept.device, call, kept.layout, PLUGRAD_OK);
}

}  // namespace plugrad
