#include <plugrad/nn/optimizer.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/update.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace plugrad::nn {
namespace {
enum { kAdamRate, kAdamBeta1, kAdamBeta2, kAdamEpsilon, kAdamWeightDecay, kAdamAmsgrad };
enum { kAdamMean, kAdamSquares, kAdamLargest };
}  // namespace

// At a beta of 1 the bias corrections divide by zero.
Adam::Adam(const char* name, std::vector<ParameterGroup> groups, double lr, AdamOptions options, bool decoupled)
    : Optimizer(name,
                {{"lr", lr},
                 {"beta1", options.beta1, 1},
                 {"beta2", options.beta2, 1},
                 {"eps", options.epsilon},
                 {"weight_decay", options.weight_decay},
                 {"amsgrad", options.amsgrad ? 1.0 : 0.0}},
                {{"exp_avg"}, {"exp_avg_sq"}, {"max_exp_avg_sq"}}),
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

bool Adam::has_slot(size_t slot, std::span<const double> options) const {
  return slot != kAdamLargest || options[kAdamAmsgrad] != 0;
}

void Adam::update_by_largest(const Update& u) {
  const double rate = u.options[kAdamRate], decay = u.options[kAdamWeightDecay], taken = static_cast<double>(taken_[u.at]);
  const double beta1 = u.options[kAdamBeta1], beta2 = u.options[kAdamBeta2];
  Tensor grad = u.grad;
  if (decoupled_ && decay != 0) u.parameter.mul_(1 - rate * decay);
  else if (decay != 0) grad = add(grad, mul(u.parameter, decay));
  Tensor &mean = slot(kAdamMean, u), &squares = slot(kAdamSquares, u), &largest = slot(kAdamLargest, u);
  mean.mul_(beta1);
  mean.add_(grad, 1 - beta1);
  squares.mul_(beta2);
  squares.add_(mul(grad, grad), 1 - beta2);
  largest.copy_(maximum(largest, squares));
  const double correction = std::sqrt(1 - std::pow(beta2, taken));
  const Tensor move = div(mean, add(mul(sqrt(largest), 1 / correction), u.options[kAdamEpsilon]));
  u.parameter.add_(move, -rate / (1 - std::pow(beta1, taken)));
}

void Adam::update(const Update& u, Updates& together) {
  if (u.options[kAdamAmsgrad] != 0) return update_by_largest(u);
  const AdamStep step{u.options[kAdamRate],
                      u.options[kAdamBeta1],
                      u.options[kAdamBeta2],
                      u.options[kAdamEpsilon],
                      u.options[kAdamWeightDecay],
                      decoupled_,
                      taken_[u.at]};
  together.adam_step(u.parameter, slot(0, u), slot(1, u), u.grad, step);
}

bool Adam::count(int by) {
  for_each_update([&](const Update& each) { taken_[each.at] += by; });
  return true;
}

// Returns a rank-0 tensor for each parameter, on the parameter's device.
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
