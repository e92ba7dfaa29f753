// The generator that a thread's random functions use.
#pragma once
#include <core/runtime/device_state.hpp>
#include <core/runtime/local.hpp>
#include <plugrad/runtime/generator.hpp>

namespace plugrad {

// The generator of the innermost GeneratorScope of this thread on the device. The thread has a scope, perhaps on another
// device.
Generator& generator_in_scope(DeviceState& device);
inline Generator& generator_of(DeviceState& device) { return local().scope ? generator_in_scope(device) : device.generator; }

}  // namespace plugrad
