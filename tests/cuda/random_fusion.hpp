// Small fusions of tensor ops, drawn from a seed. They are the same on every device, and printable.
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
  Shape shape;                   // of the result, or of a leaf
  std::vector<int64_t> numbers;  // their meaning depends on the kind: axes, a range, indices
};

struct Fusion {
  uint64_t seed;
  std::vector<Step> steps;
  std::string text() const;  // one line per step
};

// Draws 2 to 4 leaves, then 5 to 40 steps.
Fusion draw_fusion(uint64_t seed);
// The fusion without this step, which no other step uses.
Fusion without_step(const Fusion& fusion, size_t step);
bool is_used(const Fusion& fusion, size_t step);

struct Results {
  std::vector<std::vector<double>> values, gradients;  // values of each step, gradients of each leaf
};
// Returns all values, and the gradients of the sum of the means of all unused values.
Results run_fusion(const Fusion& fusion, DType dtype, Device device);

}  // namespace plugrad::test
