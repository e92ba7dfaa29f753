// Counts and describes the devices.
#pragma once
#include <plugrad/sdk/backend.hpp>

namespace plugrad::cuda {

// Returns the number of devices, or 0 and the reason. Asks the driver and opens no device.
DeviceCount count_devices() noexcept;

// Fills in a device's description except capabilities and alignment.
void describe_device(int index, plugrad_device_info& info);

}  // namespace plugrad::cuda
