// Lists of calls, submitted to a device together (plugrad/sdk/list.h).
#pragma once
#include <plugrad/sdk/list.h>
#include <core/runtime/device_state.hpp>
#include <core/runtime/plugins/foreign.hpp>

#include <span>

namespace plugrad {

// Returns the plugin's functions for lists on the device, or null. Throws Error (internal) if the table is incomplete.
const plugrad_lists* lists_of(const DeviceState& device);
// Whether the device gains from batches of the kernel. offered: the result of lists_of.
bool takes_batches(const DeviceState& device, const plugrad_lists* offered, const plugrad_kernel* kernel);

class CallList {
 public:
  CallList() = default;
  CallList(const CallList&) = delete;
  CallList& operator=(const CallList&) = delete;
  ~CallList();

  bool is_made() const { return made_; }
  // Both return the plugin's status. The caller holds the gate of the stream.
  plugrad_status make(const plugrad_lists& offered, StreamState& stream, std::span<const plugrad_list_call> calls,
                      uint32_t flags);
  plugrad_status run(uint64_t first, const uint64_t* changed) { return contained(offered_->run, made_, first, changed); }

 private:
  const plugrad_lists* offered_ = nullptr;
  const StreamState* stream_ = nullptr;
  plugrad_list* made_ = nullptr;
};

// Several calls of the same kernel.
struct Batch {
  const plugrad_lists& offered;
  std::span<const plugrad_list_call> calls;
  std::span<Storage* const* const> storages;  // of the operands of each call
};
// Submits the calls together. Returns false if the caller has to submit each call on its own, for instance because a call
// writes memory of another call. Throws Error if the stream failed.
bool submit_batch(DeviceState& device, const Batch& batch);

// Whether no call writes memory of another call. storages: of the operands of each call.
bool are_independent(std::span<const plugrad_list_call> calls, std::span<Storage* const* const> storages);

}  // namespace plugrad
