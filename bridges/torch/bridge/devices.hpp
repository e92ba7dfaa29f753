// The devices of all plugins as indices of PyTorch's one device type for other libraries, PrivateUse1.
#pragma once
#include <c10/core/Device.h>
#include <plugrad/runtime/device.hpp>

#include <string>
#include <vector>

namespace plugrad_torch {

// The names in the order of their indices: the list in PLUGRAD_TORCH_DEVICES, or else all devices of all plugins. Opens no
// device.
const std::vector<std::string>& device_names();
c10::DeviceIndex device_count();
// Opens the device at its first use. Throws c10::Error for an index out of range.
plugrad::Device device_at(c10::DeviceIndex index);
inline plugrad::Device device_of(c10::Device device) { return device_at(device.index()); }
// The index of an open device.
c10::DeviceIndex index_of(plugrad::Device device);
bool is_open(c10::DeviceIndex index);
inline c10::Device at_index(c10::DeviceIndex index) { return {c10::DeviceType::PrivateUse1, index}; }

// Waits for the device's work. Throws c10::Error, or IndexError for an op that found an index out of range.
void synchronize(c10::DeviceIndex index);

// The thread's current device.
c10::DeviceIndex current_device();
// Throws c10::Error for an index out of range.
void set_current_device(c10::DeviceIndex index);
// Returns the device's index, or the current device's index for a device without an index.
c10::DeviceIndex index_or_current(std::optional<c10::Device> device);

}  // namespace plugrad_torch
