// The points, weights and losses of micrograd's demonstration.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace plugrad::test {

struct Moons {
  std::vector<double> points;      // (100, 2)
  std::vector<double> labels;      // 1 and -1
  std::vector<double> parameters;  // 337: layer by layer, neuron by neuron: weights, then bias
  struct Step {
    double loss, accuracy;
  };
  std::vector<Step> steps;  // 100

  int64_t count() const { return static_cast<int64_t>(labels.size()); }
};
// Reads the fixtures. Throws std::runtime_error.
const Moons& moons();

constexpr int64_t kMoonsLayers[] = {2, 16, 16, 1};
constexpr double kMoonsDecay = 1e-4;
inline double moons_rate(size_t step) { return 1.0 - 0.9 * static_cast<double>(step) / 100; }

// Expects the loss of the fixture within 1e-9, relative, and its accuracy.
void expect_moons_step(size_t step, double loss, double accuracy);

}  // namespace plugrad::test
