// A plugin's kernels for fusions: see plugrad/sdk/fusion.h.
#pragma once
#include <plugrad/sdk/fusion.h>
#include <core/runtime/device_state.hpp>

#include <cstddef>
#include <optional>
#include <span>

namespace plugrad {

// Returns the plugin's functions for fusions; fields that the plugin does not have yet are 0. Throws Error (internal) if
// they break the contract.
std::optional<plugrad_fusions> fusions_of(const DeviceState& device);
// Returns the device's kernel for a fusion, or null without such a kernel. It asks the plugin once for each fusion.
const plugrad_kernel* fusion_kernel(DeviceState& device, std::span<const std::byte> fusion);
// Returns how many of the first instructions of a fusion with a head the device takes.
size_t fusion_reach(DeviceState& device, std::span<const std::byte> fusion);

}  // namespace plugrad
