// The formulas of PyTorch's optimisers, as loops in double precision.
#pragma once
#include <plugrad/nn/optimizers.hpp>

#include <functional>
#include <memory>
#include <vector>

namespace plugrad::test {

using Numbers = std::vector<double>;
inline const Numbers kStart{0.5, -1.25, 3.0, 0.0, -0.001};
// A gradient that changes with the step, and is exact in f32 and f64.
Numbers gradient(int step);

// Makes a step of the parameter p. The loop holds the optimiser's state.
using Loop = std::function<void(Numbers& p, const Numbers& grad, int step)>;
struct Formula {
  const char* name;
  std::function<std::unique_ptr<nn::Optimizer>(std::vector<Tensor>)> make;
  std::function<Loop()> loop;
};
std::vector<Formula> formulas();

}  // namespace plugrad::test
