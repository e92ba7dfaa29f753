// The programs that a plugin runs: see plugrad/sdk/program.h.
#pragma once
#include <plugrad/sdk/program.h>
#include <core/runtime/device_state.hpp>

#include <cstddef>
#include <span>

namespace plugrad {

// Returns what the device's plugin offers, or null. Throws Error (internal) if that breaks the contract.
const plugrad_programs* programs_of(const DeviceState& device);
// Returns the device's kernel for a program, or null if it has none. It asks the plugin once for each program.
const plugrad_kernel* program_kernel(DeviceState& device, std::span<const std::byte> program);

}  // namespace plugrad
