#include <core/runtime/dispatch/call_list.hpp>

#include <core/runtime/dispatch/extent.hpp>
#include <core/runtime/dispatch/op_table.hpp>
#include <core/runtime/local.hpp>
#include <core/runtime/streams/stream.hpp>

#include <algorithm>
#include <tuple>
#include <vector>

namespace plugrad {

const plugrad_lists* lists_of(const DeviceState& device) {
  if (!device.compute) return nullptr;
  const auto* found = static_cast<const plugrad_lists*>(extension_of(device.table, PLUGRAD_LISTS));
  if (found && (found->struct_size < sizeof *found || !found->make || !found->run || !found->drop))
    throw_breach(device.name, "the table of '" PLUGRAD_LISTS "' is incomplete");
  return found;
}

bool takes_batches(const DeviceState& device, const plugrad_lists* offered, const plugrad_kernel* kernel) {
  return offered && offered->batches && !kernel->workspace &&
         contained_value(device.name, "batches", [&] { return offered->batches(device.handle, kernel); });
}

CallList::~CallList() {
  if (made_ && !streams::closed()) contained_quietly(stream_->device->name, "drop", offered_->drop, made_);
}

plugrad_status CallList::make(const plugrad_lists& offered, StreamState& stream, std::span<const plugrad_list_call> calls,
                              uint32_t flags) {
  offered_ = &offered;
  stream_ = &stream;
  const plugrad_status status =
      contained(offered.make, stream.handle, calls.data(), static_cast<uint32_t>(calls.size()), flags, &made_);
  if (status != PLUGRAD_OK) made_ = nullptr;
  return status == PLUGRAD_OK && !made_ ? PLUGRAD_UNSUPPORTED : status;
}

namespace {
// A use of memory by a call.
struct Use {
  MemoryExtent extent;
  Storage* storage;
};

std::vector<Use> uses_of(std::span<const plugrad_list_call> calls, std::span<Storage* const* const> storages) {
  std::vector<Use> uses;
  for (uint32_t at = 0; at < calls.size(); ++at) {
    const plugrad_op& op = *calls[at].op;
    for (uint16_t k = 0; k < op.outputs + op.inputs; ++k)
      if (Storage* const storage = storages[at][k]) uses.push_back({extent_of(*storage, k < op.outputs, at), storage});
  }
  return uses;
}

bool are_independent(const std::vector<Use>& uses) {
  std::vector<MemoryExtent> extents;
  for (const Use& each : uses) extents.push_back(each.extent);
  return plugrad::are_independent(extents);
}
}  // namespace

bool are_independent(std::span<const plugrad_list_call> calls, std::span<Storage* const* const> storages) {
  return are_independent(uses_of(calls, storages));
}

bool submit_batch(DeviceState& device, const Batch& batch) {
  std::vector<Use> uses = uses_of(batch.calls, batch.storages);
  if (!are_independent(uses)) return false;
  std::ranges::sort(uses, {}, [](const Use& each) { return std::tuple(each.storage, each.extent.user); });
  std::vector<streams::ListUses::Written> written;
  std::vector<Storage*> read;
  for (const Use& each : uses) {
    if (each.extent.is_written) written.push_back({each.storage, each.extent.user, false});
    else if (read.empty() || read.back() != each.storage) read.push_back(each.storage);
  }
  CallList list;
  const streams::ListUses all{written, read, static_cast<uint32_t>(batch.calls.size())};
  const plugrad_status status =
      streams::submit_list(*device.compute, op_name(batch.calls[0].op->opcode), all, [&](uint64_t first) {
        const plugrad_status made =
            list.make(batch.offered, *device.compute, batch.calls, PLUGRAD_LIST_ONCE | PLUGRAD_LIST_INDEPENDENT);
        return made == PLUGRAD_OK ? list.run(first, nullptr) : made;
      });
  if (status != PLUGRAD_OK) take_report();
  return status == PLUGRAD_OK;
}

}  // namespace plugrad
