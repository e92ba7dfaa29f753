#include <core/nn/state.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/nn/optimizer.hpp>
#include <plugrad/ops/update.hpp>
#include <plugrad/runtime/error.hpp>

#include <utility>

namespace plugrad::nn {

Sgd::Sgd(std::vector<Tensor> parameters, double rate, SgdOptions options)
    : Optimizer(std::move(parameters), rate), options_(options) {
  require_option("the momentum", options_.momentum);
  require_option("the weight decay", options_.weight_decay);
  if (options_.nesterov && options_.momentum == 0) throw Error(Code::invalid, "[sgd] nesterov needs a momentum above 0");
  if (options_.momentum != 0) velocity_ = zeros_for(parameters_);
}

void Sgd::step() {
  const NoGrad unrecorded;
  ++steps_;
  const SgdStep step{rate_, options_.momentum, options_.weight_decay, options_.nesterov};
  Tensor none;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor grad = gradient_of(parameters_[i]);
    if (!grad.defined()) continue;
    Tensor& velocity = velocity_.empty() ? none : velocity_[i];
    follow(velocity, parameters_[i]);
    sgd_step(parameters_[i], velocity, grad, step);
  }
}

std::vector<NamedTensor> Sgd::state() const { return collect_state({{"momentum_buffer", &velocity_}}); }

void Sgd::load_state(const std::vector<NamedTensor>& state, int64_t steps) {
  restore_state({{"momentum_buffer", &velocity_}}, state, steps);
  steps_ = steps;
}

}  // namespace plugrad::nn
