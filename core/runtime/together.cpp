#include <core/runtime/together.hpp>

#include <core/runtime/foreign.hpp>
#include <core/runtime/stream.hpp>

#include <algorithm>
#include <cstring>

namespace plugrad {
namespace {
struct Use {
  Storage* storage;
  uint32_t op;
  bool writes;
};

// What ops use, sorted by storage. The rest of what an immediate would be is left out.
std::vector<Use> uses_of(const OpsTogether& all) {
  std::vector<Use> uses;
  for (uint32_t at = 0; at < all.ops.size(); ++at) {
    const plugrad_op& op = *all.ops[at];
    for (uint16_t k = 0; k < op.outputs + op.inputs; ++k)
      if (all.storages[at][k]) uses.push_back({all.storages[at][k], at, k < op.outputs});
  }
  std::ranges::sort(uses, {}, [](const Use& use) { return std::pair(use.storage, use.op); });
  return uses;
}

bool are_independent(const std::vector<Use>& uses) {
  for (size_t first = 0, last = 0; first < uses.size(); first = last) {
    bool one_writes = false;
    for (last = first; last < uses.size() && uses[last].storage == uses[first].storage; ++last)
      one_writes |= uses[last].writes;
    if (one_writes && uses[first].op != uses[last - 1].op) return false;
  }
  return true;
}
}  // namespace

const plugrad_together* together_of(const DeviceState& device) {
  if (!device.compute) return nullptr;
  const auto* found = static_cast<const plugrad_together*>(extension_of(device.table, PLUGRAD_TOGETHER));
  if (found && (found->struct_size < sizeof *found || !found->takes || !found->run))
    throw_breach(device.name, "the list of '" PLUGRAD_TOGETHER "' is incomplete");
  return found;
}

bool submit_together(DeviceState& device, const OpsTogether& all) {
  const std::vector<Use> uses = uses_of(all);
  if (!are_independent(uses)) return false;
  std::vector<streams::ListUses::Written> written;
  std::vector<Storage*> read;
  for (const Use& each : uses) {
    if (each.writes) written.push_back({each.storage, each.op, false});
    else read.push_back(each.storage);
  }
  const auto count = static_cast<uint32_t>(all.ops.size());
  const char* const name = op_name(all.ops[0]->opcode);
  const plugrad_status status = streams::submit_list(*device.compute, name, {written, read, count}, [&](uint64_t first) {
    for (uint32_t i = 0; i < count; ++i) all.ops[i]->number = first + i;
    return contained(all.offered.run, all.kernel, device.compute->handle, all.ops.data(), count);
  });
  if (status != PLUGRAD_OK) take_report();
  return status == PLUGRAD_OK;
}

bool Together::takes(DeviceState& device, const plugrad_kernel* kernel) {
  if (kernel == kernel_) return is_taken_;
  const plugrad_together* const offered = together_of(device);
  kernel_ = kernel;
  is_taken_ = offered && !kernel->workspace &&
              contained_value(device.name, "takes", [&] { return offered->takes(device.handle, kernel); });
  return is_taken_;
}

bool Together::keep(const OpCall& call) {
  DeviceState& device = *call.storages[0]->device;
  if (modes.load(std::memory_order_relaxed) & kObserved) return false;
  device.require_open();
  const plugrad_op op = call.op();
  uint16_t layout = 0;
  for (int i = 0; i < call.operands(); ++i) layout |= call.views[i]->layout;
  const plugrad_kernel* const kernel = device.kernel(op, call.key(), layout);
  if (!kernel || !takes(device, kernel)) return false;
  Kept& kept = kept_.emplace_back();
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
  if (call.attributes)
    std::memcpy(kept.attributes.data(), call.attributes,
                std::min<size_t>(*static_cast<const uint32_t*>(call.attributes), sizeof kept.attributes));
  return true;
}

void Together::run() {
  std::vector<Kept*> left;
  for (Kept& each : kept_) {
    for (size_t k = 0; k < kMost; ++k) each.pointers[k] = &each.views[k];
    each.op.views = each.pointers.data();
    if (each.op.attributes) each.op.attributes = each.attributes.data();
    left.push_back(&each);
  }
  while (!left.empty()) {
    const plugrad_kernel* const kernel = left[0]->kernel;
    const auto others = std::ranges::stable_partition(left, [&](const Kept* each) { return each->kernel == kernel; });
    run_kernel({left.begin(), others.begin()});
    left.erase(left.begin(), others.begin());
  }
  kept_.clear();
}

void Together::run_kernel(std::span<Kept* const> all) {
  DeviceState& device = *all[0]->device;
  std::vector<plugrad_op*> ops;
  std::vector<Storage* const*> storages;
  for (Kept* each : all) {
    ops.push_back(&each->op);
    storages.push_back(each->storages.data());
  }
  if (all.size() > 1 && submit_together(device, {*together_of(device), all[0]->kernel, ops, storages}))
    return local().count_kernels(device.ordinal, all.size());
  for (const Kept* each : all) {
    const plugrad_op& op = each->op;
    const OpCall call{op.opcode, op.outputs, op.inputs, op.views, each->storages.data(), op.attributes};
    run_without_kernel_or_throw(device, call, each->layout, PLUGRAD_OK);
  }
}

}  // namespace plugrad
