// Random numbers: one generator a device, Philox 4x32-10 (see sdk/ops.md).
#pragma once
#include <plugrad/runtime/api.hpp>
#include <plugrad/runtime/device.hpp>

#include <cstdint>

namespace plugrad {

// Seed and how many counters are used up: with it a program goes on where another stopped.
struct GeneratorState {
  uint64_t seed, offset;
  friend bool operator==(const GeneratorState&, const GeneratorState&) = default;
};

// Seeds the generators of all devices, those opened later too. The seed starts as 0.
PLUGRAD_API void manual_seed(uint64_t seed);
PLUGRAD_API GeneratorState generator_state(Device device);
PLUGRAD_API void set_generator_state(Device device, GeneratorState state);

}  // namespace plugrad
