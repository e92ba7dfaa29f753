// Finds devices that factor matrices: devices of plugins with the extension of plugrad/sdk/linalg.h.
#pragma once
#include <plugrad/sdk/linalg.h>
#include <core/runtime/device_state.hpp>

#include <string>

namespace plugrad::linear_algebra {

// Returns the extension, or null if the plugin lacks it, or the device has streams or no host memory. Throws Error (invalid)
// if the extension breaks the contract.
const plugrad_linalg* find(const DeviceState& device);

// Returns the device itself if it has the extension, else a host-memory device with the extension, if the policy of
// PLUGRAD_FALLBACK allows this. what: the function's name. Throws Error (unsupported).
DeviceState& device_for(DeviceState& device, const std::string& what);

}  // namespace plugrad::linear_algebra
