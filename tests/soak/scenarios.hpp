// Programs that run on any device and return one number, for tests that let something fail at each of their steps.
#pragma once
#include <plugrad/runtime/device.hpp>

#include <cstdint>
#include <vector>

namespace plugrad::test {

struct Scenario {
  const char* name;
  double (*run)(Device device, int64_t side);  // side: of its matrices of f32
};
const std::vector<Scenario>& scenarios();

}  // namespace plugrad::test
