#include <plugrad/nn/optimizers.hpp>
#include <plugrad/ops/elementwise.hpp>

#include <utility>

namespace plugrad::nn {
namespace {
enum { kLionRate, kLionBeta1, kLionBeta2, kLionWeightDecay, kLionMaximize };
}

Lion::Lion(ParameterGroups parameters, double lr, LionOptions options)
    : Optimizer("lion",
                {{"lr", lr},
                 {"beta1", options.beta1, 1},
                 {"beta2", options.beta2, 1},
                 {"weight_decay", options.weight_decay},
                 flag("maximize", options.maximize)},
                {{"exp_avg"}}) {
  add_groups(std::move(parameters));
}

void Lion::update(const Update& u, Updates&) {
  Tensor& mean = slot(0, u);
  const double beta1 = u.options[kLionBeta1], beta2 = u.options[kLionBeta2];
  const Tensor direction = sign(add(mul(mean, beta1), mul(u.grad, 1 - beta1)));
  if (u.options[kLionWeightDecay] != 0) u.parameter.mul_(1 - u.options[kLionRate] * u.options[kLionWeightDecay]);
  u.parameter.add_(direction, -u.options[kLionRate]);
  mean.mul_(beta2);
  mean.add_(u.grad, 1 - beta2);
}

}  // namespace plugrad::nn
