// Random numbers: each device has a generator, Philox 4x32-10 (see sdk/ops.md).
#pragma once
#include <plugrad/runtime/api.hpp>
#include <plugrad/runtime/device.hpp>

#include <cstdint>

namespace plugrad {

// The seed and the number of counters consumed. Restoring it continues the sequence.
struct GeneratorState {
  uint64_t seed, offset;
  friend bool operator==(const GeneratorState&, const GeneratorState&) = default;
};

// Seeds the generators of all devices, including devices opened later. The initial seed is 0.
PLUGRAD_API void manual_seed(uint64_t seed);
PLUGRAD_API GeneratorState generator_state(Device device);
PLUGRAD_API void set_generator_state(Device device, GeneratorState state);

}  // namespace plugrad
