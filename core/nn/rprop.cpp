#include <plugrad/nn/optimizers.hpp>
#include <plugrad/ops/activations.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>

#include <limits>
#include <utility>

namespace plugrad::nn {
namespace {
enum { kRpropRate, kRpropMinus, kRpropPlus, kRpropLeast, kRpropMost, kRpropMaximize };
enum { kRpropBefore, kRpropSizes };
}  // namespace

Rprop::Rprop(ParameterGroups parameters, double lr, RpropOptions options)
    : Optimizer("rprop",
                {{"lr", lr},
                 {"eta_minus", options.eta_minus, 1},
                 {"eta_plus", options.eta_plus, std::numeric_limits<double>::infinity(), 1},
                 {"step_size_min", options.step_size_min},
                 {"step_size_max", options.step_size_max},
                 flag("maximize", options.maximize)},
                {{"prev"}, {"step_size"}}, {{"step"}}) {
  add_groups(std::move(parameters));
}

// After a change of sign, the element rests for a step.
void Rprop::update(const Update& u, Updates&) {
  Tensor &before = slot(kRpropBefore, u), &sizes = slot(kRpropSizes, u);
  if (number(0, u) == 1) sizes.fill_(u.options[kRpropRate]);
  const Tensor turn = sign(mul(u.grad, before)), turned = lt(turn, 0);
  const Tensor factor = where(turned, u.options[kRpropMinus], where(gt(turn, 0), u.options[kRpropPlus], ones_like(turn)));
  sizes.copy_(clamp(mul(sizes, factor), u.options[kRpropLeast], u.options[kRpropMost]));
  before.copy_(where(turned, 0, u.grad));
  u.parameter.add_(mul(sign(before), sizes), -1);
}

}  // namespace plugrad::nn
