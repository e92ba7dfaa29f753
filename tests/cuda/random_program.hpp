// Small programs of tensor ops, drawn from a seed. They are the same on every device, and can be printed.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace plugrad::test {

// A step makes one value; a and b are the indices of earlier values.
struct Step {
  const struct StepKind* kind;
  int a = -1, b = -1;
  Shape shape;                   // the shape of the result, or of a leaf
  std::vector<int64_t> numbers;  // their meaning depends on the kind: axes, a range, indices
};

struct Program {
  uint64_t seed;
  std::vector<Step> steps;
  std::string text() const;  // one line per step
};

// Draws 2 to 4 leaves, then 5 to 40 steps.
Program draw_program(uint64_t seed);
// The program without this step, which no other step uses.
Program without_step(const Program& program, size_t step);
bool is_used(const Program& program, size_t step);

struct Results {
  std::vector<std::vector<double>> values, gradients;  // values of each step, gradients of each leaf
};
// Returns all values, and the gradients of the sum of the means of all unused values.
Results run_program(const Program& program, DType dtype, Device device);

}  // namespace plugrad::test
