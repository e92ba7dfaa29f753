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
  m_ = zeros_for(parameters_);
  v_ = zeros_for(parameters_);
}

Adam::Adam(std::vector<Tensor> parameters, double rate, AdamOptions options)
    : Adam(std::move(parameters), rate, options, false) {}

AdamW::AdamW(std::vector<Tensor> parameters, double rate, AdamOptions options)
    : Adam(std::move(parameters), rate, options, true) {}

void Adam::step() {
  const NoGrad unrecorded;
  ++steps_;
  const AdamStep step{rate_, options_.beta1, options_.beta2, options_.epsilon, options_.weight_decay, decoupled_, steps_};
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor grad = parameters_[i].grad();
    if (!grad.defined()) continue;
    follow(m_[i], parameters_[i]);
    follow(v_[i], parameters_[i]);
    adam_step(parameters_[i], m_[i], v_[i], grad, step);
  }
}

std::vector<NamedTensor> Adam::state() const { return collect_state({{"exp_avg", &m_}, {"exp_avg_sq", &v_}}); }

void Adam::load_state(const std::vector<NamedTensor>& state, int64_t steps) {
  restore_state({{"exp_avg", &m_}, {"exp_avg_sq", &v_}}, state, steps);
  steps_ = steps;
}

}  // namespace plugrad::nn
