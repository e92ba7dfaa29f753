#include <plugrad/nn/optimizers.hpp>
#include <plugrad/ops/elementwise.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace plugrad::nn {
namespace {
enum { kAsgdRate, kAsgdLambda, kAsgdAlpha, kAsgdStart, kAsgdWeightDecay, kAsgdMaximize };
// "eta" and "mu" are for the next step, as in PyTorch's state; the last two are for the current step.
enum { kAsgdSteps, kAsgdEta, kAsgdMu, kAsgdEtaNow, kAsgdMuNow };
}  // namespace

ASGD::ASGD(ParameterGroups parameters, double lr, ASGDOptions options)
    : Optimizer("asgd",
                {{"lr", lr},
                 {"lambd", options.lambda},
                 {"alpha", options.alpha},
                 {"t0", options.t0},
                 {"weight_decay", options.weight_decay},
                 flag("maximize", options.maximize)},
                {{"ax"}}, {{"step"}, {"eta"}, {"mu"}, {nullptr}, {nullptr}}) {
  add_groups(std::move(parameters));
}

void ASGD::count(const Update& u) {
  const double rate = u.options[kAsgdRate];
  const bool is_first = number(kAsgdSteps, u) == 0;
  number(kAsgdEtaNow, u) = is_first ? rate : number(kAsgdEta, u);
  number(kAsgdMuNow, u) = is_first ? 1 : number(kAsgdMu, u);
  const double step = ++number(kAsgdSteps, u);
  number(kAsgdEta, u) = rate / std::pow(1 + u.options[kAsgdLambda] * rate * step, u.options[kAsgdAlpha]);
  number(kAsgdMu, u) = 1 / std::max(1.0, step - u.options[kAsgdStart]);
}

void ASGD::update(const Update& u, Updates&) {
  const double rate = number(kAsgdEtaNow, u), share = number(kAsgdMuNow, u);
  const Tensor grad = decayed(u, u.options[kAsgdWeightDecay]);
  u.parameter.mul_(1 - u.options[kAsgdLambda] * rate);
  u.parameter.add_(grad, -rate);
  Tensor& mean = slot(0, u);
  if (share == 1) mean.copy_(u.parameter);
  else mean.add_(sub(u.parameter, mean), share);
}

}  // namespace plugrad::nn
