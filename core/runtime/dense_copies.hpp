// The second rung: an op whose kernel does not serve these layouts runs on dense copies, or on memory instead of immediates.
#pragma once
#include <core/runtime/dispatch.hpp>

#include <cstdint>

namespace plugrad {

// Copies only what the device's kernels need, runs the op, and copies its outputs back. Returns false where no kernel of the
// device serves any such arrangement. Throws Error where a copy or the kernel fails.
bool run_on_copies(DeviceState& device, const OpCall& call, uint16_t layout);

}  // namespace plugrad
