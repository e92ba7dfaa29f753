// Programs that run on any device and return one number, for tests that let something fail at each of their steps.
#pragma once
#include <plugrad/runtime/device.hpp>

#include <cstdint>
#include <ostream>
#include <vector>

namespace plugrad::test {

struct Scenario {
  const char* name;
  double (*run)(Device device, int64_t side);  // side: of its matrices of f32
  // For GoogleTest, which would print the bytes.
  friend void PrintTo(const Scenario& scenario, std::ostream* out) { *out << scenario.name; }
};
const std::vector<Scenario>& scenarios();

}  // namespace plugrad::test
