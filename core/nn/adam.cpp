#include <core/nn/state.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/nn/optimizer.hpp>
#include <plugrad/ops/update.hpp>
#include <plugrad/runtime/error.hpp>

#include <utility>

namespace plugrad::nn {

Adam::Adam(std::vector<Tensor> parameters, double rate, AdamOptions options, bool decoupled)
    : Optimizer(std::move(parameters), rate), options_(options), decoupled_(decoupled) {
  for (const double beta : {options_.beta1, options_.beta2}) {
    // At 1 the bias corrections divide by zero.
    if (!(beta >= 0 && beta < 1)) {
      throw Error(Code::invalid, "[adam] beta1 and beta2 must lie in [0, 1), got " + std::to_string(beta));
    }
  }
  require_option("epsilon", options_.epsilon);
  require_option("the weight decay", options_.weight_decay);
  m_ = zeros_for(parameters_);
  v_ = zeros_for(parameters_);
  taken_.resize(parameters_.size());
}

Adam::Adam(std::vector<Tensor> parameters, double rate, AdamOptions options)
    : Adam(std::move(parameters), rate, options, false) {}

AdamW::AdamW(std::vector<Tensor> parameters, double rate, AdamOptions options)
    : Adam(std::move(parameters), rate, options, true) {}

void Adam::step() {
  const NoGrad unrecorded;
  ++steps_;
  AdamStep step{rate_, options_.beta1, options_.beta2, options_.epsilon, options_.weight_decay, decoupled_, 0};
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor grad = gradient_of(parameters_[i]);
    if (!grad.defined()) continue;
    follow(m_[i], parameters_[i]);
    follow(v_[i], parameters_[i]);
    step.number = ++taken_[i];
    adam_step(parameters_[i], m_[i], v_[i], grad, step);
  }
}

namespace {
// One rank-0 tensor for each parameter, on the parameter's device.
std::vector<Tensor> as_tensors(const std::vector<int64_t>& counts, const std::vector<Tensor>& parameters) {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < counts.size(); ++i)
    tensors.push_back(Tensor::from(std::vector<int64_t>{counts[i]}, {}, parameters[i].device()));
  return tensors;
}
}  // namespace

std::vector<NamedTensor> Adam::state() const {
  const std::vector<Tensor> taken = as_tensors(taken_, parameters_);
  return collect_state({{"exp_avg", &m_}, {"exp_avg_sq", &v_}, {"step", &taken}});
}

void Adam::load_state(const std::vector<NamedTensor>& state, int64_t steps) {
  const std::vector<Tensor> taken = as_tensors(taken_, parameters_);
  restore_state({{"exp_avg", &m_}, {"exp_avg_sq", &v_}, {"step", &taken}}, state, steps);
  for (size_t i = 0; i < taken.size(); ++i) taken_[i] = taken[i].item<int64_t>();
  steps_ = steps;
}

}  // namespace plugrad::nn
