// Adagrad and Adadelta.
#include <plugrad/nn/optimizers.hpp>
#include <plugrad/ops/elementwise.hpp>

#include <cmath>
#include <utility>

namespace plugrad::nn {
namespace {
enum { kAdagradRate, kAdagradRateDecay, kAdagradWeightDecay, kAdagradStart, kAdagradEpsilon, kAdagradMaximize };
enum { kAdadeltaRate, kAdadeltaRho, kAdadeltaEpsilon, kAdadeltaWeightDecay, kAdadeltaMaximize };
}  // namespace

Adagrad::Adagrad(ParameterGroups parameters, double lr, AdagradOptions options)
    : Optimizer("adagrad",
                {{"lr", lr},
                 {"lr_decay", options.lr_decay},
                 {"weight_decay", options.weight_decay},
                 {"initial_accumulator_value", options.initial_accumulator_value},
                 {"eps", options.epsilon},
                 flag("maximize", options.maximize)},
                {{"sum"}}, {{"step"}}) {
  add_groups(std::move(parameters));
}

double Adagrad::slot_start(size_t, std::span<const double> options) const { return options[kAdagradStart]; }

void Adagrad::update(const Update& u, Updates&) {
  const Tensor grad = decayed(u, u.options[kAdagradWeightDecay]);
  Tensor& sum = slot(0, u);
  sum.add_(mul(grad, grad));
  u.parameter.add_(div(grad, add(sqrt(sum), u.options[kAdagradEpsilon])),
                   -u.options[kAdagradRate] / (1 + (number(0, u) - 1) * u.options[kAdagradRateDecay]));
}

Adadelta::Adadelta(ParameterGroups parameters, double lr, AdadeltaOptions options)
    : Optimizer("adadelta",
                {{"lr", lr},
                 {"rho", options.rho, std::nextafter(1.0, 2.0)},
                 {"eps", options.epsilon},
                 {"weight_decay", options.weight_decay},
                 flag("maximize", options.maximize)},
                {{"square_avg"}, {"acc_delta"}}) {
  add_groups(std::move(parameters));
}

void Adadelta::update(const Update& u, Updates&) {
  const double rho = u.options[kAdadeltaRho], epsilon = u.options[kAdadeltaEpsilon];
  const Tensor grad = decayed(u, u.options[kAdadeltaWeightDecay]);
  Tensor &squares = slot(0, u), &moves = slot(1, u);
  squares.mul_(rho);
  squares.add_(mul(grad, grad), 1 - rho);
  const Tensor move = mul(div(sqrt(add(moves, epsilon)), sqrt(add(squares, epsilon))), grad);
  moves.mul_(rho);
  moves.add_(mul(move, move), 1 - rho);
  u.parameter.add_(move, -u.options[kAdadeltaRate]);
}

}  // namespace plugrad::nn
