// Small programs of tensor ops, drawn by a seed: the same on every device, and printable.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace plugrad::test {

// The value that a step makes; a and b name earlier ones.
struct Step {
  const struct StepKind* kind;
  int a = -1, b = -1;
  Shape shape;                     // of the result; of a leaf
  std::vector<int64_t> numbers;    // what the kind makes of them: axes, a range, indices
};

struct Program {
  uint64_t seed;
  std::vector<Step> steps;
  std::string text() const;  // a line a step
};

// Between 2 leaves and 4 at first, then 6 to 14 steps.
Program draw_program(uint64_t seed);

struct Results {
  std::vector<std::vector<double>> values, gradients;  // of each step; of each leaf
};
// All values, and the gradients of the sum of the means of those that nothing else used.
Results run_program(const Program& program, DType dtype, Device device);

}  // namespace plugrad::test
