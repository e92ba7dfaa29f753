#include <plugrad/ops/update.hpp>

#include <core/ops/run.hpp>
#include <core/runtime/dispatch/fusion_kernels.hpp>
#include <core/runtime/dispatch/pending_ops.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <utility>
#include <vector>

namespace plugrad {
namespace {
void require_like(const char* what, const Tensor& param, const Tensor& other, const char* name) {
  require_defined(other, what);
  if (is_together(param, other) && same_shape(view_of(param), view_of(other))) [[likely]]
    return;
  throw Error(Code::invalid, std::string("[") + what + "] the parameter is " + param.shape().text() + ", " +
                                 dtype_name(param.dtype()) + ", " + param.device().name() + ", but " + name + " is " +
                                 other.shape().text() + ", " + dtype_name(other.dtype()) + ", " + other.device().name() +
                                 ": shape, dtype and device must be equal");
}

// 1 - beta^number. It is kept, because successive parameters of an optimiser need the same value.
struct Correction {
  double beta = std::nan(""), value = 0;
  int64_t number = 0;

  double of(double its_beta, int64_t its_number) {
    if (beta != its_beta || number != its_number)
      *this = {its_beta, 1 - std::pow(its_beta, static_cast<double>(its_number)), its_number};
    return value;
  }
};

Tensor decayed(const Tensor& param, const Tensor& grad, double weight_decay) {
  return weight_decay == 0 ? grad : add(grad, mul(param, weight_decay));
}

void composed_sgd(Tensor& param, Tensor& velocity, const Tensor& grad, const SgdStep& s) {
  const Tensor g = decayed(param, grad, s.weight_decay);
  velocity.copy_(add(mul(velocity, s.momentum), g));
  param.add_(s.nesterov ? add(g, mul(velocity, s.momentum)) : velocity, -s.rate);
}

void composed_adam(Tensor& param, Tensor& m, Tensor& v, const Tensor& grad, const AdamStep& s, double c1, double c2) {
  if (s.decoupled && s.weight_decay != 0) param.mul_(1 - s.rate * s.weight_decay);
  const Tensor g = s.decoupled ? grad : decayed(param, grad, s.weight_decay);
  m.copy_(add(mul(m, s.beta1), mul(g, 1 - s.beta1)));
  v.copy_(add(mul(v, s.beta2), mul(mul(g, g), 1 - s.beta2)));
  param.add_(div(div(m, c1), add(sqrt(div(v, c2)), s.epsilon)), -s.rate);
}

// A step composed of simpler ops. It runs if the device declines the step's op.
struct Composition {
  Op op;
  Tensor param, first, second, grad;  // first, second: the velocity, or the moments
  SgdStep sgd = {};
  AdamStep adam = {};
  double c1 = 1, c2 = 1;

  void run() {
    const NoGrad unrecorded;
    count_decomposition(param);
    if (op == Op::DESCENT_STEP) param.add_(grad, -sgd.rate);
    else if (op == Op::SGD_STEP) composed_sgd(param, first, grad, sgd);
    else composed_adam(param, first, second, grad, adam, c1, c2);
  }
};
}  // namespace

struct Updates::Pending {
  PendingOps ops;
  std::vector<Composition> compositions;  // of the pending ops

  void run() {
    std::vector<Composition> all = std::exchange(compositions, {});
    for (const size_t each : ops.run()) all[each].run();
  }
  // Runs the pending ops if they use these tensors. Call it before an immediate use of the tensors.
  void run_before(std::initializer_list<const Tensor*> used) {
    if (std::ranges::any_of(used, [&](const Tensor* x) { return x->defined() && ops.use(*storage_of(*x)); })) run();
  }
};

namespace {
// Keeps a step or runs it, by its op or as the composition returned by `other`.
template <size_t kOutputs, size_t kInputs, class Other>
void update(Updates::Pending* pending, Op op, const Operand (&outputs)[kOutputs], const Operand (&inputs)[kInputs],
            Attributes attributes, const Other& other) {
  if (pending) {
    Composition step = other();
    if (pending->ops.add(op, outputs, inputs, attributes)) return pending->compositions.push_back(std::move(step));
    pending->run_before({&step.param, &step.first, &step.second, &step.grad});
  }
  if (!try_run(op, outputs, inputs, attributes)) other().run();
}

// Whether a compiled step makes fusions of a gradient's ops, but not of the update after them.
bool fusions_end_before_updates(const Tensor& param) {
  const std::optional<plugrad_fusions> offered = fusions_of(device_of(param));
  return offered && !(offered->contents & PLUGRAD_FUSION_UPDATES);
}

// With decay the gradient is a temporary, so it is used at once.
void plain_sgd(Tensor& param, const Tensor& grad, const SgdStep& s, Updates::Pending* pending) {
  const bool decays = s.weight_decay != 0;
  if (decays && pending) pending->run_before({&param, &grad});
  const Tensor g = decayed(param, grad, s.weight_decay);
  if (decays && fusions_end_before_updates(param)) param.add_(g, -s.rate);
  else
    update(decays ? nullptr : pending, Op::DESCENT_STEP, {param}, {g, immediate(dtype_of(param), s.rate, 0)}, {},
           [&] { return Composition{Op::DESCENT_STEP, param, {}, {}, g, s}; });
}

void sgd(Tensor& param, Tensor& velocity, const Tensor& grad, const SgdStep& s, Updates::Pending* pending) {
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
  if (s.momentum == 0) return plain_sgd(param, grad, s, pending);
  raise_version(velocity);
  const plugrad_sgd attributes{sizeof attributes, s.nesterov, s.momentum, s.weight_decay};
  const Immediate rate = immediate(dtype_of(param), s.rate, 0);
  update(pending, Op::SGD_STEP, {param, velocity}, {grad, rate}, attributes,
         [&] { return Composition{Op::SGD_STEP, param, velocity, {}, grad, s}; });
}

void adam(Tensor& param, Tensor& m, Tensor& v, const Tensor& grad, const AdamStep& s, Updates::Pending* pending) {
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
  update(pending, Op::ADAM_STEP, {param, m, v}, {grad, number(s.rate), number(c1), number(c2)}, attributes,
         [&] { return Composition{Op::ADAM_STEP, param, m, v, grad, {}, s, c1, c2}; });
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
Updates::Pending* Updates::pending(const Tensor& param) {
  if (!pending_ && param.defined() && device_of(param).compute) pending_ = std::make_unique<Pending>();
  return pending_.get();
}
void Updates::sgd_step(Tensor& param, Tensor& velocity, const Tensor& grad, const SgdStep& step) {
  sgd(param, velocity, grad, step, pending(param));
}
void Updates::adam_step(Tensor& param, Tensor& m, Tensor& v, const Tensor& grad, const AdamStep& step) {
  adam(param, m, v, grad, step, pending(param));
}
void Updates::run() {
  if (pending_) pending_->run();
}

}  // namespace plugrad
