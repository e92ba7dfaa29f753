// Relatives of Adam: NAdam, RAdam and Adamax.
#include <plugrad/nn/optimizers.hpp>
#include <plugrad/ops/elementwise.hpp>

#include <cmath>
#include <utility>

namespace plugrad::nn {
namespace {
// The options and slots that all three have.
enum { kRate, kBeta1, kBeta2, kEpsilon, kWeightDecay, kMaximize };
enum { kMean, kSquares };
enum { kNAdamMomentumDecay = kMaximize + 1, kNAdamDecoupled };
enum { kRAdamDecoupled = kMaximize + 1 };
enum { kSteps, kMomentumProduct };

// value becomes beta value + (1 - beta) by.
void approach(Tensor& value, const Tensor& by, double beta) {
  value.mul_(beta);
  value.add_(by, 1 - beta);
}

// Returns the momentum of a step, which grows from half of beta1 (Dozat, 2016, section 4).
double momentum_of(std::span<const double> options, double step) {
  return options[kBeta1] * (1 - 0.5 * std::pow(0.96, step * options[kNAdamMomentumDecay]));
}
}  // namespace

NAdam::NAdam(ParameterGroups parameters, double lr, NAdamOptions options)
    : Optimizer("nadam",
                {{"lr", lr},
                 {"beta1", options.beta1, 1},
                 {"beta2", options.beta2, 1},
                 {"eps", options.epsilon},
                 {"weight_decay", options.weight_decay},
                 flag("maximize", options.maximize),
                 {"momentum_decay", options.momentum_decay},
                 flag("decoupled_weight_decay", options.decoupled_weight_decay)},
                {{"exp_avg"}, {"exp_avg_sq"}}, {{"step"}, {"mu_product"}}) {
  add_groups(std::move(parameters));
}

void NAdam::count(const Update& u) {
  if (number(kSteps, u) == 0) number(kMomentumProduct, u) = 1;
  number(kMomentumProduct, u) *= momentum_of(u.options, ++number(kSteps, u));
}

void NAdam::update(const Update& u, Updates&) {
  const double rate = u.options[kRate], decay = u.options[kWeightDecay];
  const bool is_decoupled = u.options[kNAdamDecoupled] != 0;
  if (is_decoupled && decay != 0) u.parameter.mul_(1 - rate * decay);
  const Tensor grad = decayed(u, is_decoupled ? 0 : decay);
  Tensor &mean = slot(kMean, u), &squares = slot(kSquares, u);
  approach(mean, grad, u.options[kBeta1]);
  approach(squares, mul(grad, grad), u.options[kBeta2]);
  const double step = number(kSteps, u), product = number(kMomentumProduct, u);
  const double now = momentum_of(u.options, step), next = momentum_of(u.options, step + 1);
  const double correction = 1 / std::sqrt(1 - std::pow(u.options[kBeta2], step));
  const Tensor scale = add(mul(sqrt(squares), correction), u.options[kEpsilon]);
  u.parameter.add_(div(grad, scale), -rate * (1 - now) / (1 - product));
  u.parameter.add_(div(mean, scale), -rate * next / (1 - product * next));
}

RAdam::RAdam(ParameterGroups parameters, double lr, RAdamOptions options)
    : Optimizer("radam",
                {{"lr", lr},
                 {"beta1", options.beta1, 1},
                 {"beta2", options.beta2, 1},
                 {"eps", options.epsilon},
                 {"weight_decay", options.weight_decay},
                 flag("maximize", options.maximize),
                 flag("decoupled_weight_decay", options.decoupled_weight_decay)},
                {{"exp_avg"}, {"exp_avg_sq"}}, {{"step"}}) {
  add_groups(std::move(parameters));
}

void RAdam::update(const Update& u, Updates&) {
  const double rate = u.options[kRate], decay = u.options[kWeightDecay], beta2 = u.options[kBeta2];
  const bool is_decoupled = u.options[kRAdamDecoupled] != 0;
  if (is_decoupled && decay != 0) u.parameter.mul_(1 - rate * decay);
  const Tensor grad = decayed(u, is_decoupled ? 0 : decay);
  Tensor &mean = slot(kMean, u), &squares = slot(kSquares, u);
  approach(mean, grad, u.options[kBeta1]);
  approach(squares, mul(grad, grad), beta2);
  const double step = number(kSteps, u), power = std::pow(beta2, step);
  const double unbiased_rate = rate / (1 - std::pow(u.options[kBeta1], step));
  const double longest = 2 / (1 - beta2) - 1, length = longest - 2 * step * power / (1 - power);
  if (length <= 5) return u.parameter.add_(mean, -unbiased_rate);
  const double rectified =
      std::sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length) * (1 - power));
  u.parameter.add_(div(mean, add(sqrt(squares), u.options[kEpsilon])), -unbiased_rate * rectified);
}

Adamax::Adamax(ParameterGroups parameters, double lr, AdamaxOptions options)
    : Optimizer("adamax",
                {{"lr", lr},
                 {"beta1", options.beta1, 1},
                 {"beta2", options.beta2, 1},
                 {"eps", options.epsilon},
                 {"weight_decay", options.weight_decay},
                 flag("maximize", options.maximize)},
                {{"exp_avg"}, {"exp_inf"}}, {{"step"}}) {
  add_groups(std::move(parameters));
}

void Adamax::update(const Update& u, Updates&) {
  const Tensor grad = decayed(u, u.options[kWeightDecay]);
  Tensor &mean = slot(kMean, u), &largest = slot(kSquares, u);
  approach(mean, grad, u.options[kBeta1]);
  largest.copy_(maximum(mul(largest, u.options[kBeta2]), add(abs(grad), u.options[kEpsilon])));
  u.parameter.add_(div(mean, largest), -u.options[kRate] / (1 - std::pow(u.options[kBeta1], number(kSteps, u))));
}

}  // namespace plugrad::nn
