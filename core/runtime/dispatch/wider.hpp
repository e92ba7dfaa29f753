// The second fallback: runs an op in the dtype in which its elements are accumulated, if the device has no kernel for its
// own.
#pragma once
#include <core/runtime/dispatch/dispatch.hpp>

namespace plugrad {

// Converts the operands on the device, runs the op on them, and converts the outputs back: small integers wrap as they do
// in their own dtype, and halves are rounded once. A conversion for which the device has no kernel takes two steps. Returns
// false if the op has no wider dtype, or the device has no kernel for it. Throws Error if a step fails.
bool run_wider(DeviceState& device, const OpCall& call);

}  // namespace plugrad
