// Which devices there are, or why there are none.
#pragma once
#include <plugrad/sdk/backend.hpp>

namespace plugrad::cuda {

// Asks the driver, and opens no device. Never throws.
DeviceCount count_devices() noexcept;

// Fills name, identity, memory and the rest of a device's description, save for capabilities and alignment.
void describe_device(int index, plugrad_device_info& info);

}  // namespace plugrad::cuda
