// Programs that run on any device and return one number, for tests in which each of their steps fails once.
#pragma once
#include <plugrad/runtime/device.hpp>

#include <cstdint>
#include <ostream>
#include <vector>

namespace plugrad::test {

struct Scenario {
  const char* name;
  double (*run)(Device device, int64_t side);  // side: the rows and columns of its matrices of f32
  // GoogleTest would otherwise print the bytes.
  friend void PrintTo(const Scenario& scenario, std::ostream* out) { *out << scenario.name; }
};
const std::vector<Scenario>& scenarios();

}  // namespace plugrad::test
