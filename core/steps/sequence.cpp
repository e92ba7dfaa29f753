#include <core/steps/sequence.hpp>

namespace plugrad {

const plugrad_sequences* sequences_of(const DeviceState& device) {
  if (!device.compute) return nullptr;
  const auto* found = static_cast<const plugrad_sequences*>(extension_of(device.table, PLUGRAD_SEQUENCES));
  if (found && (found->struct_size < sizeof *found || !found->make || !found->run || !found->drop))
    throw_breach(device.name, "the list of '" PLUGRAD_SEQUENCES "' is incomplete");
  return found;
}

Sequence::~Sequence() {
  if (made_ && !streams::closed()) contained_quietly(stream_->device->name, "drop", offered_->drop, made_);
}

plugrad_status Sequence::make(const plugrad_sequences& offered, StreamState& stream,
                              std::span<const plugrad_sequence_call> calls) {
  offered_ = &offered;
  stream_ = &stream;
  const plugrad_status status =
      contained(offered.make, stream.handle, calls.data(), static_cast<uint32_t>(calls.size()), &made_);
  if (status != PLUGRAD_OK) made_ = nullptr;
  return status == PLUGRAD_OK && !made_ ? PLUGRAD_UNSUPPORTED : status;
}

}  // namespace plugrad
