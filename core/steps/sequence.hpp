// A list of calls that the plugin takes as one (plugrad/sdk/sequence.h).
#pragma once
#include <core/runtime/device_state.hpp>
#include <core/runtime/foreign.hpp>
#include <plugrad/sdk/sequence.h>

#include <span>

namespace plugrad {

// Returns what the plugin offers for the device, or null. Throws Error (internal) if it is incomplete.
const plugrad_sequences* sequences_of(const DeviceState& device);

class Sequence {
 public:
  Sequence() = default;
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;
  ~Sequence();

  bool is_made() const { return made_; }
  // Both return the plugin's status. The caller holds the gate of the stream.
  plugrad_status make(const plugrad_sequences& offered, StreamState& stream, std::span<const plugrad_sequence_call> calls);
  plugrad_status run(uint64_t first, const uint64_t* changed) { return contained(offered_->run, made_, first, changed); }

 private:
  const plugrad_sequences* offered_ = nullptr;
  const StreamState* stream_ = nullptr;
  plugrad_sequence* made_ = nullptr;
};

}  // namespace plugrad
