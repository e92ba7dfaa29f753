// Shared by the optimisers: converts their tensors to named state and back.
#pragma once
#include <plugrad/nn/optimizer.hpp>

#include <string>
#include <vector>

namespace plugrad::nn {

// One tensor per parameter, under a name: "exp_avg" gives "exp_avg.0", "exp_avg.1", ...
struct StateGroup {
  std::string name;
  const std::vector<Tensor>* tensors;
};

// Throws Error (invalid), which names the option, unless the value is finite and at least 0.
void require_option(const char* name, double value);

std::vector<NamedTensor> collect_state(const std::vector<StateGroup>& groups);
// Copies state into the groups; devices may differ. Checks all of it before it changes any tensor.
void restore_state(const std::vector<StateGroup>& groups, const std::vector<NamedTensor>& state, int64_t steps);
// Returns a tensor of zeros for each parameter.
std::vector<Tensor> zeros_for(const std::vector<Tensor>& parameters);
// Moves an optimiser's tensor to its parameter's device: the module may have moved since the last step.
void follow(Tensor& state, const Tensor& parameter);

}  // namespace plugrad::nn
