#include <plugrad/nn/optimizers.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/update.hpp>
#include <plugrad/runtime/error.hpp>

#include <utility>

namespace plugrad::nn {
namespace {
enum { kSgdRate, kSgdMomentum, kSgdWeightDecay, kSgdNesterov, kSgdDampening, kSgdMaximize };
}

SGD::SGD(ParameterGroups parameters, double lr, SGDOptions options)
    : Optimizer("sgd",
                {{"lr", lr},
                 {"momentum", options.momentum},
                 {"weight_decay", options.weight_decay},
                 {"nesterov", options.nesterov ? 1.0 : 0.0},
                 {"dampening", options.dampening},
                 {"maximize", options.maximize ? 1.0 : 0.0}},
                {{"momentum_buffer"}}) {
  add_groups(std::move(parameters));
}

void SGD::check(std::span<const double> options, const std::vector<Tensor>&) const {
  if (options[kSgdNesterov] == 0) return;
  if (options[kSgdMomentum] == 0) throw Error(Code::invalid, "[sgd] nesterov needs a momentum above 0");
  if (options[kSgdDampening] != 0) throw Error(Code::invalid, "[sgd] nesterov needs a dampening of 0");
}

bool SGD::has_slot(size_t, std::span<const double> options) const { return options[kSgdMomentum] != 0; }

// The first step takes the whole gradient into the velocity, also with dampening.
bool SGD::is_counted() const {
  for (size_t i = 0; i < groups(); ++i)
    if (option("dampening", i) != 0) return true;
  return false;
}

void SGD::update_dampened(const Update& u) {
  const Tensor grad = decayed(u, u.options[kSgdWeightDecay]);
  Tensor& velocity = slot(0, u);
  velocity.mul_(u.options[kSgdMomentum]);
  velocity.add_(grad, steps() == 1 ? 1 : 1 - u.options[kSgdDampening]);
  u.parameter.add_(velocity, -u.options[kSgdRate]);
}

void SGD::update(const Update& u, Updates& together) {
  const SgdStep step{u.options[kSgdRate], u.options[kSgdMomentum], u.options[kSgdWeightDecay], u.options[kSgdNesterov] != 0};
  if (step.momentum != 0 && u.options[kSgdDampening] != 0) return update_dampened(u);
  Tensor none;
  together.sgd_step(u.parameter, step.momentum != 0 ? slot(0, u) : none, u.grad, step);
}

}  // namespace plugrad::nn
