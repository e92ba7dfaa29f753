// Random numbers: each device has a generator, Philox 4x32-10 (see sdk/ops.md).
#pragma once
#include <plugrad/runtime/api.hpp>
#include <plugrad/runtime/device.hpp>

#include <cstdint>
#include <memory>

namespace plugrad {

// The seed and the number of counters consumed. Restoring it continues the sequence.
struct GeneratorState {
  uint64_t seed, offset;
  friend bool operator==(const GeneratorState&, const GeneratorState&) = default;
};

// Seeds the generators of all devices, including devices opened later. The initial seed is 0.
PLUGRAD_API void manual_seed(uint64_t seed);
// Inside a GeneratorScope on the device, both are about the scope's state.
PLUGRAD_API GeneratorState generator_state(Device device);
PLUGRAD_API void set_generator_state(Device device, GeneratorState state);

// While it lives, this thread's random functions on a device, and its compiled steps, draw from the caller's state instead
// of from the device's generator. Its end writes the advanced state back. The innermost scope on a device counts. Throws
// Error (invalid) inside a compiled step.
class PLUGRAD_API GeneratorScope {
 public:
  GeneratorScope(Device device, GeneratorState& state);
  ~GeneratorScope();
  GeneratorScope(const GeneratorScope&) = delete;
  GeneratorScope& operator=(const GeneratorScope&) = delete;

 private:
  friend struct Generator& generator_in_scope(DeviceState& device);
  struct Inner;
  std::unique_ptr<Inner> inner_;
};

}  // namespace plugrad
