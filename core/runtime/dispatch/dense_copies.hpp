// The first fallback: runs an op on dense copies, or on memory in place of immediates, if no kernel supports its layouts.
#pragma once
#include <core/runtime/dispatch/dispatch.hpp>

#include <cstdint>

namespace plugrad {

// Copies as few operands as the device's kernels allow, runs the op, and copies its outputs back. Returns false if no kernel
// of the device supports any such arrangement. Throws Error if a copy or the kernel fails.
bool run_on_copies(DeviceState& device, const OpCall& call, uint16_t layout);

}  // namespace plugrad
