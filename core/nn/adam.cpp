#include <plugrad/nn/optimizer.hpp>
#include <plugrad/ops/update.hpp>

#include <algorithm>
#include <utility>

namespace plugrad::nn {
namespace {
enum { kAdamRate, kAdamBeta1, kAdamBeta2, kAdamEpsilon, kAdamWeightDecay };
}

// At a beta of 1 the bias corrections divide by zero.
Adam::Adam(const char* name, std::vector<ParameterGroup> groups, double lr, AdamOptions options, bool decoupled)
    : Optimizer(name,
                {{"lr", lr},
                 {"beta1", options.beta1, 1},
                 {"beta2", options.beta2, 1},
                 {"eps", options.epsilon},
                 {"weight_decay", options.weight_decay}},
                {{"exp_avg"}, {"exp_avg_sq"}}),
      decoupled_(decoupled) {
  add_groups(std::move(groups));
}
Adam::Adam(std::vector<ParameterGroup> groups, double lr, AdamOptions options)
    : Adam("adam", std::move(groups), lr, options, false) {}
Adam::Adam(std::vector<Tensor> parameters, double lr, AdamOptions options)
    : Adam("adam", {{std::move(parameters)}}, lr, options, false) {}
AdamW::AdamW(std::vector<ParameterGroup> groups, double lr, AdamOptions options)
    : Adam("adamw", std::move(groups), lr, options, true) {}
AdamW::AdamW(std::vector<Tensor> parameters, double lr, AdamOptions options)
    : Adam("adamw", {{std::move(parameters)}}, lr, options, true) {}

void Adam::resized() { taken_.resize(all_parameters().size()); }

void Adam::update(const Update& u, Updates& together) {
  const AdamStep step{u.options[kAdamRate],        u.options[kAdamBeta1], u.options[kAdamBeta2], u.options[kAdamEpsilon],
                      u.options[kAdamWeightDecay], decoupled_,        taken_[u.at]};
  together.adam_step(u.parameter, slot(0, u), slot(1, u), u.grad, step);
}

bool Adam::count(int by) {
  for_each_update([&](const Update& each) { taken_[each.at] += by; });
  return true;
}

// One rank-0 tensor for each parameter, on the parameter's device.
std::vector<Tensor> Adam::steps_taken() const {
  const std::vector<Tensor> parameters = all_parameters();
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < taken_.size(); ++i)
    tensors.push_back(Tensor::from(std::vector<int64_t>{taken_[i]}, {}, parameters[i].device()));
  return tensors;
}

std::vector<NamedTensor> Adam::state() const {
  std::vector<NamedTensor> all = Optimizer::state();
  const std::vector<Tensor> taken = steps_taken();
  for (size_t i = 0; i < taken.size(); ++i) all.push_back({"step." + std::to_string(i), taken[i]});
  return all;
}

void Adam::load_state(const std::vector<NamedTensor>& given, int64_t steps) {
  for (const auto& [name, tensor] : given)
    if (name.starts_with("step.") && tensor.dtype() == DType::i64 && tensor.count() == 1)
      require_steps(name, tensor.item<int64_t>());
  Optimizer::load_state(given, steps);
  for (size_t i = 0; i < taken_.size(); ++i)
    taken_[i] = std::ranges::find(given, "step." + std::to_string(i), &NamedTensor::name)->tensor.item<int64_t>();
}

}  // namespace plugrad::nn
