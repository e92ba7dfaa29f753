#include <plugrad/nn/optimizers.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/reduce.hpp>
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
                 flag("nesterov", options.nesterov),
                 {"dampening", options.dampening},
                 flag("maximize", options.maximize)},
                {{"momentum_buffer"}}, {{nullptr}}) {
  add_groups(std::move(parameters));
}

void SGD::check(std::span<const double> options, const std::vector<Tensor>&) const {
  if (options[kSgdNesterov] == 0) return;
  if (options[kSgdMomentum] == 0) throw Error(Code::invalid, "[sgd] nesterov needs a momentum above 0");
  if (options[kSgdDampening] != 0) throw Error(Code::invalid, "[sgd] nesterov needs a dampening of 0");
}

bool SGD::has_slot(size_t, std::span<const double> options) const { return options[kSgdMomentum] != 0; }

// The number of a parameter counts its steps: the first one takes the whole gradient into the velocity, also with dampening.
bool SGD::is_counted() const {
  for (size_t i = 0; i < groups(); ++i)
    if (option("dampening", i) != 0) return true;
  return false;
}

// A velocity that is not zero has taken a gradient.
void SGD::loaded() {
  if (!is_counted()) return;
  for (size_t i = 0; i < slots_[0].tensors.size(); ++i) {
    const Tensor& velocity = slots_[0].tensors[i];
    numbers_[0].values[i] = velocity.defined() && max(abs(velocity)).item<double>() != 0 ? 1 : 0;
  }
}

void SGD::update_dampened(const Update& u) {
  const Tensor grad = decayed(u, u.options[kSgdWeightDecay]);
  Tensor& velocity = slot(0, u);
  velocity.mul_(u.options[kSgdMomentum]);
  velocity.add_(grad, number(0, u) == 1 ? 1 : 1 - u.options[kSgdDampening]);
  u.parameter.add_(velocity, -u.options[kSgdRate]);
}

void SGD::update(const Update& u, Updates& together) {
  const SgdStep step{u.options[kSgdRate], u.options[kSgdMomentum], u.options[kSgdWeightDecay], u.options[kSgdNesterov] != 0};
  if (step.momentum != 0 && u.options[kSgdDampening] != 0) return update_dampened(u);
  Tensor none;
  together.sgd_step(u.parameter, step.momentum != 0 ? slot(0, u) : none, u.grad, step);
}

}  // namespace plugrad::nn
