#include <plugrad/ops/update.hpp>

#include <core/ops/run.hpp>
#include <core/runtime/program_kernels.hpp>
#include <core/runtime/together.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>

#include <cmath>

namespace plugrad {
namespace {
void require_like(const char* what, const Tensor& param, const Tensor& other, const char* name) {
  require_defined(other, what);
  if (is_together(param, other) && same_shape(view_of(param), view_of(other))) [[likely]] return;
  throw Error(Code::invalid, std::string("[") + what + "] the parameter is " + param.shape().text() + ", " +
                                 dtype_name(param.dtype()) + ", " + param.device().name() + ", but " + name + " is " +
                                 other.shape().text() + ", " + dtype_name(other.dtype()) + ", " + other.device().name() +
                                 ": shape, dtype and device must be equal");
}

// 1 - beta^number. The parameters of an optimiser ask for the same one after the other.
struct Correction {
  double beta = std::nan(""), value = 0;
  int64_t number = 0;

  double of(double its_beta, int64_t its_number) {
    if (beta != its_beta || number != its_number)
      *this = {its_beta, 1 - std::pow(its_beta, static_cast<double>(its_number)), its_number};
    return value;
  }
};

// Runs the op, or keeps it. Returns false if the device cannot run it.
template <size_t kOutputs, size_t kInputs>
bool try_update(Together* kept, Op op, const Operand (&outputs)[kOutputs], const Operand (&inputs)[kInputs],
                Attributes attributes = {}) {
  return (kept && kept->add(op, outputs, inputs, attributes)) || try_run(op, outputs, inputs, attributes);
}

Tensor decayed(const Tensor& param, const Tensor& grad, double weight_decay) {
  return weight_decay == 0 ? grad : add(grad, mul(param, weight_decay));
}

void composed_sgd(Tensor& param, Tensor& velocity, const Tensor& grad, const SgdStep& s) {
  const Tensor g = decayed(param, grad, s.weight_decay);
  velocity.copy_(add(mul(velocity, s.momentum), g));
  param.add_(s.nesterov ? add(g, mul(velocity, s.momentum)) : velocity, -s.rate);
}

// Whether a compiled step makes programs of a gradient's ops, but not of the update that follows.
bool programs_end_before_updates(const Tensor& param) {
  const plugrad_programs* const offered = programs_of(device_of(param));
  return offered && !(offered->contents & PLUGRAD_PROGRAM_UPDATES);
}

void plain_sgd(Tensor& param, const Tensor& grad, const SgdStep& s, Together* kept) {
  const Tensor g = decayed(param, grad, s.weight_decay);
  if (s.weight_decay == 0 || !programs_end_before_updates(param)) {
    if (try_update(kept, Op::DESCENT_STEP, {param}, {g, immediate(dtype_of(param), s.rate, 0)})) return;
    count_decomposition(param);
  }
  param.add_(g, -s.rate);
}

void composed_adam(Tensor& param, Tensor& m, Tensor& v, const Tensor& grad, const AdamStep& s, double c1, double c2) {
  if (s.decoupled && s.weight_decay != 0) param.mul_(1 - s.rate * s.weight_decay);
  const Tensor g = s.decoupled ? grad : decayed(param, grad, s.weight_decay);
  m.copy_(add(mul(m, s.beta1), mul(g, 1 - s.beta1)));
  v.copy_(add(mul(v, s.beta2), mul(mul(g, g), 1 - s.beta2)));
  param.add_(div(div(m, c1), add(sqrt(div(v, c2)), s.epsilon)), -s.rate);
}

void sgd(Tensor& param, Tensor& velocity, const Tensor& grad, const SgdStep& s, Together* kept) {
  const NoGrad unrecorded;
  require_defined(param, "sgd_step");
  require_like("sgd_step", param, grad, "the gradient");
  if (!(s.momentum >= 0))
    throw Error(Code::invalid, "[sgd_step] the momentum is " + std::to_string(s.momentum) + ": 0 or more expected");
  if (s.momentum != 0) require_like("sgd_step", param, velocity, "the velocity");
  require_writable(param, "sgd_step");
  if (s.momentum != 0) require_writable(velocity, "sgd_step");
  if (!param.count()) return;
  raise_version(param);
  if (s.momentum == 0) return plain_sgd(param, grad, s, kept);
  raise_version(velocity);
  const plugrad_sgd attributes{sizeof attributes, s.nesterov, s.momentum, s.weight_decay};
  const Immediate rate = immediate(dtype_of(param), s.rate, 0);
  if (try_update(kept, Op::SGD_STEP, {param, velocity}, {grad, rate}, attributes)) return;
  count_decomposition(param);
  composed_sgd(param, velocity, grad, s);
}

void adam(Tensor& param, Tensor& m, Tensor& v, const Tensor& grad, const AdamStep& s, Together* kept) {
  const NoGrad unrecorded;
  require_defined(param, "adam_step");
  require_like("adam_step", param, grad, "the gradient");
  require_like("adam_step", param, m, "the first moment");
  require_like("adam_step", param, v, "the second moment");
  for (Tensor* each : {&param, &m, &v}) require_writable(*each, "adam_step");
  if (!param.count()) return;
  for (Tensor* each : {&param, &m, &v}) raise_version(*each);
  thread_local Correction first, second;
  const double c1 = first.of(s.beta1, s.number), c2 = second.of(s.beta2, s.number);
  const plugrad_adam attributes{sizeof attributes, s.decoupled, s.beta1, s.beta2, s.epsilon, s.weight_decay};
  const auto number = [&](double value) { return immediate(dtype_of(param), value, 0); };
  if (try_update(kept, Op::ADAM_STEP, {param, m, v}, {grad, number(s.rate), number(c1), number(c2)}, attributes)) return;
  count_decomposition(param);
  composed_adam(param, m, v, grad, s, c1, c2);
}

}  // namespace

void sgd_step(Tensor& param, Tensor& velocity, const Tensor& grad, const SgdStep& step) {
  sgd(param, velocity, grad, step, nullptr);
}
void adam_step(Tensor& param, Tensor& m, Tensor& v, const Tensor& grad, const AdamStep& step) {
  adam(param, m, v, grad, step, nullptr);
}

Updates::Updates() = default;
Updates::~Updates() = default;
Together* Updates::kept(const Tensor& param) {
  if (!kept_ && param.defined() && device_of(param).compute) kept_ = std::make_unique<Together>();
  return kept_.get();
}
void Updates::sgd_step(Tensor& param, Tensor& velocity, const Tensor& grad, const SgdStep& step) {
  sgd(param, velocity, grad, step, kept(param));
}
void Updates::adam_step(Tensor& param, Tensor& m, Tensor& v, const Tensor& grad, const AdamStep& step) {
  adam(param, m, v, grad, step, kept(param));
}
void Updates::run() {
  if (kept_) kept_->run();
}

}  // namespace plugrad
