// Generators of random numbers: a seed and the number of counters consumed, kept by PyTorch's generator.
#pragma once
#include <ATen/core/Generator.h>
#include <plugrad/runtime/generator.hpp>

#include <mutex>
#include <optional>

namespace plugrad_torch {

const at::Generator& default_generator(c10::DeviceIndex index);
at::Generator new_generator(c10::DeviceIndex index);

// While it lives, random functions of the thread draw from the generator, or from the device's default generator. Inside a
// recording the recording's own scope counts.
class RandomScope {
 public:
  RandomScope(const std::optional<at::Generator>& generator, c10::DeviceIndex index);

 private:
  std::unique_lock<std::mutex> lock_;
  std::optional<plugrad::GeneratorScope> scope_;
};

// Set during a recording: RandomScope then opens no scope of its own.
extern thread_local bool is_recording;

}  // namespace plugrad_torch
