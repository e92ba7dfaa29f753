// The last rung: an op that its device cannot do runs on a host-memory device, on copies of the operands' memory.
#pragma once
#include <core/runtime/dispatch.hpp>

namespace plugrad {

// Copies the operands to `host`, runs the op there, and copies its outputs back; waits for both devices. Returns false, with
// no output changed, where the host has no kernel either.
bool bounce(DeviceState& host, const OpCall& call);

}  // namespace plugrad
