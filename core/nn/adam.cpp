#include <plugrad/nn/optimizers.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/update.hpp>

#include <cmath>
#include <utility>

namespace plugrad::nn {
namespace {
enum { kAdamRate, kAdamBeta1, kAdamBeta2, kAdamEpsilon, kAdamWeightDecay, kAdamAmsgrad, kAdamMaximize, kAdamDecoupled };
enum { kAdamMean, kAdamSquares, kAdamLargest };

AdamOptions decoupled(AdamOptions options) {
  options.decoupled_weight_decay = true;
  return options;
}
}  // namespace

// At a beta of 1 the bias corrections divide by zero.
Adam::Adam(const char* name, ParameterGroups parameters, double lr, AdamOptions options)
    : Optimizer(name,
                {{"lr", lr},
                 {"beta1", options.beta1, 1},
                 {"beta2", options.beta2, 1},
                 {"eps", options.epsilon},
                 {"weight_decay", options.weight_decay},
                 flag("amsgrad", options.amsgrad),
                 flag("maximize", options.maximize),
                 flag("decoupled_weight_decay", options.decoupled_weight_decay)},
                {{"exp_avg"}, {"exp_avg_sq"}, {"max_exp_avg_sq"}}, {{"step"}}) {
  add_groups(std::move(parameters));
}
Adam::Adam(ParameterGroups parameters, double lr, AdamOptions options) : Adam("adam", std::move(parameters), lr, options) {}
AdamW::AdamW(ParameterGroups parameters, double lr, AdamOptions options)
    : Adam("adamw", std::move(parameters), lr, decoupled(options)) {}

bool Adam::has_slot(size_t slot, std::span<const double> options) const {
  return slot != kAdamLargest || options[kAdamAmsgrad] != 0;
}

void Adam::update_by_largest(const Update& u) {
  const double rate = u.options[kAdamRate], decay = u.options[kAdamWeightDecay], taken = number(0, u);
  const double beta1 = u.options[kAdamBeta1], beta2 = u.options[kAdamBeta2];
  const bool is_decoupled = u.options[kAdamDecoupled] != 0;
  if (is_decoupled && decay != 0) u.parameter.mul_(1 - rate * decay);
  const Tensor grad = decayed(u, is_decoupled ? 0 : decay);
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
                      u.options[kAdamDecoupled] != 0,
                      static_cast<int64_t>(number(0, u))};
  together.adam_step(u.parameter, slot(kAdamMean, u), slot(kAdamSquares, u), u.grad, step);
}

}  // namespace plugrad::nn
