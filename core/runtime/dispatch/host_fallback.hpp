// The last fallback: runs an unsupported op on a host-memory device, on copies of the operands.
#pragma once
#include <core/runtime/dispatch/dispatch.hpp>

namespace plugrad {

// Copies the operands to `host`, runs the op there, and copies its outputs back; waits for both devices. Returns false and
// changes no output if the host has no kernel either.
bool run_on_host(DeviceState& host, const OpCall& call);

}  // namespace plugrad
