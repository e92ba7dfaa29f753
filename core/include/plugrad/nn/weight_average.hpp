// Averages of a training's weights: of equal weight, or exponential.
#pragma once
#include <plugrad/nn/module.hpp>
#include <plugrad/tensor/tensor.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace plugrad::nn {

// The running average of parameters. The first update() copies the parameters. Without a decay, the average gives each
// update the same weight (stochastic weight averaging: Izmailov et al., Averaging Weights Leads to Wider Optima, 2018);
// with a decay it becomes decay average + (1 - decay) parameter. update() may be part of a compiled step. Not thread-safe.
class PLUGRAD_API WeightAverage {
 public:
  // Throws Error (invalid) without parameters, and for a decay outside [0, 1].
  explicit WeightAverage(std::vector<Tensor> parameters, std::optional<double> decay = std::nullopt);
  // Takes the parameters' current values into the average. Records no graph.
  void update();
  const std::vector<Tensor>& averages() const { return averages_; }  // in the order of the parameters
  int64_t updates() const;                                           // so far; waits for the device
  // Exchanges the values of the parameters and the averages: once to evaluate the average, and again to go on training.
  void exchange();

  // For a checkpoint: "n_averaged", and the averages as "average.0", "average.1" ...
  std::vector<NamedTensor> state() const;
  // Throws Error (invalid) with the name of a tensor that is missing or has another shape or dtype, and changes nothing.
  void load_state(const std::vector<NamedTensor>& state);

 private:
  std::vector<Tensor> parameters_, averages_;
  std::optional<double> decay_;
  Tensor count_;  // the number of updates, on the device, so that a compiled step counts
};

}  // namespace plugrad::nn
