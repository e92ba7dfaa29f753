// Fused optimisers: one kernel for each parameter, or one submission for all of them.
#include <ATen/Operators.h>
#include <bridge/generator.hpp>
#include <bridge/kernel.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/powers.hpp>
#include <plugrad/ops/update.hpp>

#include <vector>

namespace plugrad_torch {
namespace o = at::_ops;
namespace {
// The gradients of GradScaler are divided by its scale here; a step with an infinite gradient is left out.
struct Scaling {
  const OptT& scale;
  const OptT& found_inf;
  bool skips() const { return found_inf && found_inf->defined() && found_inf->item().toDouble() != 0; }
};
P gradient(const T& grad, const Scaling& scaling, bool maximize) {
  P g = over(grad);
  if (scaling.scale && scaling.scale->defined()) g.copy_(plugrad::div(g, plugrad::cast(over(*scaling.scale), g.dtype())));
  return maximize ? plugrad::neg(g) : g;
}
// plugrad's pending updates point to their tensors: they live until run().
std::vector<P> all_over(at::TensorList tensors) {
  std::vector<P> all;
  for (const T& each : tensors) all.push_back(over(each));
  return all;
}

struct Sgd {
  double rate, momentum, decay, dampening;
  bool nesterov, maximize, is_first;
};
// torch.optim.SGD's formula for what plugrad's kernel lacks.
void plain_sgd_step(P param, P velocity, P grad, const Sgd& how) {
  if (how.decay) grad = plugrad::add(grad, plugrad::mul(param, how.decay));
  if (how.momentum) {
    if (how.is_first) velocity.copy_(grad);
    else velocity.mul_(how.momentum), velocity.add_(grad, 1 - how.dampening);
    grad = how.nesterov ? plugrad::add(grad, plugrad::mul(velocity, how.momentum)) : velocity;
  }
  param.add_(grad, -how.rate);
}
void sgd(at::TensorList params, at::TensorList grads, at::TensorList velocities, const Sgd& how, const Scaling& scaling) {
  if (scaling.skips()) return;
  plugrad::Updates updates;
  std::vector<P> p = all_over(params), v = how.momentum ? all_over(velocities) : std::vector<P>(params.size());
  for (size_t i = 0; i < p.size(); ++i) {
    const P grad = gradient(grads[i], scaling, how.maximize);
    if (how.momentum && (how.dampening || !params[i].numel())) {
      plain_sgd_step(p[i], v[i], grad, how);
      continue;
    }
    if (how.momentum && how.is_first) v[i].fill_(0);
    updates.sgd_step(p[i], v[i], grad, {how.rate, how.momentum, how.decay, how.nesterov});
  }
  updates.run();
}
void fused_sgd(at::TensorList params, at::TensorList grads, at::TensorList velocities, double decay, double momentum,
               double rate, double dampening, bool nesterov, bool maximize, bool is_first, const OptT& scale,
               const OptT& found_inf) {
  sgd(params, grads, velocities, {rate, momentum, decay, dampening, nesterov, maximize, is_first}, {scale, found_inf});
}
void fused_sgd_tensor_rate(at::TensorList params, at::TensorList grads, at::TensorList velocities, double decay,
                           double momentum, const T& rate, double dampening, bool nesterov, bool maximize, bool is_first,
                           const OptT& scale, const OptT& found_inf) {
  fused_sgd(params, grads, velocities, decay, momentum, rate.item().toDouble(), dampening, nesterov, maximize, is_first,
            scale, found_inf);
}

struct Adam {
  double rate, beta1, beta2, decay, epsilon;
  bool decoupled, amsgrad, maximize;
};
struct AdamState {
  P param, grad, m, v, greatest, step;
};
// The formula of torch.optim.Adam, with the number of the step on the device: a recorded step must not read it.
void plain_adam_step(AdamState s, const Adam& how) {
  P grad = s.grad;
  if (how.decoupled) s.param.mul_(1 - how.rate * how.decay);
  else if (how.decay) grad = plugrad::add(grad, plugrad::mul(s.param, how.decay));
  s.m.mul_(how.beta1), s.m.add_(grad, 1 - how.beta1);
  s.v.mul_(how.beta2), s.v.add_(plugrad::mul(grad, grad), 1 - how.beta2);
  P second = s.v;
  if (how.amsgrad) {
    s.greatest.copy_(plugrad::maximum(s.greatest, s.v));
    second = s.greatest;
  }
  const P of_first = plugrad::sub(1, plugrad::pow(how.beta1, s.step)),
          of_second = plugrad::sub(1, plugrad::pow(how.beta2, s.step));
  const P root =
      plugrad::add(plugrad::div(plugrad::sqrt(second), plugrad::cast(plugrad::sqrt(of_second), s.v.dtype())), how.epsilon);
  const P rate = plugrad::cast(plugrad::div(how.rate, of_first), s.m.dtype());
  s.param.copy_(plugrad::sub(s.param, plugrad::div(plugrad::mul(s.m, rate), root)));
}
void adam(at::TensorList params, at::TensorList grads, at::TensorList ms, at::TensorList vs, at::TensorList greatest,
          at::TensorList steps, const Adam& how, const Scaling& scaling) {
  if (params.empty() || scaling.skips()) return;
  plugrad::Updates updates;
  std::vector<P> p = all_over(params), m = all_over(ms), v = all_over(vs);
  // One read for all parameters: PyTorch keeps the number of the step on the device, once for each parameter.
  const bool composed = is_recording || how.amsgrad;
  const int64_t number = composed ? 0 : static_cast<int64_t>(steps[0].item().toDouble());
  for (size_t i = 0; i < p.size(); ++i) {
    const P grad = gradient(grads[i], scaling, how.maximize);
    if (composed) plain_adam_step({p[i], grad, m[i], v[i], how.amsgrad ? over(greatest[i]) : P(), over(steps[i])}, how);
    else
      updates.adam_step(p[i], m[i], v[i], grad,
                        {how.rate, how.beta1, how.beta2, how.epsilon, how.decay, how.decoupled, number});
  }
  updates.run();
}
template <bool kDecoupled>
void fused_adam(at::TensorList params, at::TensorList grads, at::TensorList m, at::TensorList v, at::TensorList greatest,
                at::TensorList steps, double rate, double beta1, double beta2, double decay, double epsilon, bool amsgrad,
                bool maximize, const OptT& scale, const OptT& found_inf) {
  adam(params, grads, m, v, greatest, steps, {rate, beta1, beta2, decay, epsilon, kDecoupled, amsgrad, maximize},
       {scale, found_inf});
}
template <bool kDecoupled>
void fused_adam_tensor_rate(at::TensorList params, at::TensorList grads, at::TensorList m, at::TensorList v,
                            at::TensorList greatest, at::TensorList steps, const T& rate, double beta1, double beta2,
                            double decay, double epsilon, bool amsgrad, bool maximize, const OptT& scale,
                            const OptT& found_inf) {
  fused_adam<kDecoupled>(params, grads, m, v, greatest, steps, rate.item().toDouble(), beta1, beta2, decay, epsilon, amsgrad,
                         maximize, scale, found_inf);
}
}  // namespace
}  // namespace plugrad_torch

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  using namespace plugrad_torch;
  kernel<o::_fused_sgd_, fused_sgd>(library);
  kernel<o::_fused_sgd__tensor_lr, fused_sgd_tensor_rate>(library);
  kernel<o::_fused_adam_, fused_adam<false>>(library);
  kernel<o::_fused_adam__tensor_lr, fused_adam_tensor_rate<false>>(library);
  kernel<o::_fused_adamw_, fused_adam<true>>(library);
  kernel<o::_fused_adamw__tensor_lr, fused_adam_tensor_rate<true>>(library);
}
