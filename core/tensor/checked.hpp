// Checks arguments of public functions beyond their types: an undefined device, and a dtype cast from a number.
#pragma once
#include <core/runtime/device_state.hpp>
#include <plugrad/runtime/error.hpp>
#include <plugrad/sdk/dtypes.hpp>
#include <plugrad/tensor/dtype.hpp>

#include <string>

namespace plugrad {

// Throws Error (invalid) for Device().
inline DeviceState& state_of(Device device) {
  if (device.defined()) return device.state();
  throw Error(Code::invalid, "[tensor] the device is undefined: name one, as in Device(\"cpu\"), or use default_device()");
}

// Throws Error (invalid) for a number without a dtype.
inline uint8_t id_of(DType dtype) {
  const auto id = static_cast<uint8_t>(dtype);
  if (dtype_info(id)) return id;
  throw Error(Code::invalid, "[tensor] DType " + std::to_string(static_cast<int64_t>(dtype)) +
                                 " does not exist: give a value that the enumeration names");
}

}  // namespace plugrad
