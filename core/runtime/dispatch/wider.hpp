// The second fallback: runs an op in the accumulator dtype of its elements, if the device has no kernel for its own dtype.
#pragma once
#include <core/runtime/dispatch/dispatch.hpp>

namespace plugrad {

// Converts the operands on the device, runs the op on them, and converts the outputs back: small integers wrap as they do
// in their own dtype, and halves are rounded once. A conversion without a kernel takes two steps. Returns false if the op
// has no wider dtype, or the device has no kernel for the wider dtype. Throws Error if a step fails.
bool run_wider(DeviceState& device, const OpCall& call);

}  // namespace plugrad
