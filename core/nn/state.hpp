// What the optimisers share: their tensors as named state, and back.
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

std::vector<NamedTensor> collect_state(const std::vector<StateGroup>& groups);
// Copies state into the groups, on whatever devices both are. Checks all of it before it changes any.
void restore_state(const std::vector<StateGroup>& groups, const std::vector<NamedTensor>& state, int64_t steps);
// A tensor of zeros for each parameter.
std::vector<Tensor> zeros_for(const std::vector<Tensor>& parameters);
// A module may have been moved since the last step; its optimiser's tensors follow.
void follow(Tensor& state, const Tensor& parameter);

}  // namespace plugrad::nn
