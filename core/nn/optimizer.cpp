#include <plugrad/nn/optimizer.hpp>

#include <core/nn/state.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/runtime/error.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <sstream>
#include <utility>

namespace plugrad::nn {

namespace {
void require_parameter(const Tensor& x, size_t i) {
  const std::string which = "[optimizer] parameter " + std::to_string(i);
  if (!x.defined()) throw Error(Code::invalid, which + " is undefined");
  if (!x.is_leaf())
    throw Error(Code::invalid, which + " of shape " + x.shape().text() + " is the result of " + x.op_name() +
                                   ": pass the tensors that it was computed from, or detach() it first");
  if (!x.requires_grad() && !is_parameter(x))
    throw Error(Code::invalid, which + " of shape " + x.shape().text() +
                                   " requires no gradient, so no step would change it: call requires_grad_() on it");
}
}  // namespace

void require_option(const char* name, double value) {
  if (!(value >= 0) || !std::isfinite(value)) {
    std::ostringstream text;
    text << "[optimizer] " << name << " is " << value << ": a finite number of at least 0 is expected";
    throw Error(Code::invalid, text.str());
  }
}

Optimizer::Optimizer(std::vector<Tensor> parameters, double rate) : parameters_(std::move(parameters)) {
  set_rate(rate);
  for (size_t i = 0; i < parameters_.size(); ++i) require_parameter(parameters_[i], i);
}

void Optimizer::set_rate(double rate) {
  require_option("the learning rate", rate);
  rate_ = rate;
}

Tensor Optimizer::gradient_of(const Tensor& parameter) {
  return parameter.requires_grad() ? parameter.grad() : Tensor();
}

Optimizer::~Optimizer() = default;

void Optimizer::clear_grad() {
  for (Tensor& parameter : parameters_) parameter.clear_grad();
}

double cosine_rate(double base, int64_t step, int64_t steps, double floor) {
  if (steps < 1) throw Error(Code::invalid, "[cosine_rate] steps must be at least 1, got " + std::to_string(steps));
  const double progress = static_cast<double>(std::clamp<int64_t>(step, 0, steps)) / static_cast<double>(steps);
  return floor + (base - floor) * (1 + std::cos(std::numbers::pi * progress)) / 2;
}

std::vector<NamedTensor> collect_state(const std::vector<StateGroup>& groups) {
  std::vector<NamedTensor> all;
  for (const StateGroup& group : groups) {
    for (size_t i = 0; i < group.tensors->size(); ++i) {
      all.push_back({group.name + "." + std::to_string(i), (*group.tensors)[i]});
    }
  }
  return all;
}

namespace {

const Tensor& find(const std::vector<NamedTensor>& state, const NamedTensor& wanted) {
  const auto entry = std::ranges::find(state, wanted.name, &NamedTensor::name);
  if (entry == state.end() || !entry->tensor.defined()) {
    throw Error(Code::invalid, "[load_state] tensor " + wanted.name + " is missing");
  }
  const Tensor& found = entry->tensor;
  if (found.shape() != wanted.tensor.shape() || found.dtype() != wanted.tensor.dtype()) {
    throw Error(Code::invalid, "[load_state] tensor " + wanted.name + " is " + dtype_name(found.dtype()) + " " +
                                   found.shape().text() + ", expected " + dtype_name(wanted.tensor.dtype()) + " " +
                                   wanted.tensor.shape().text());
  }
  return found;
}

}  // namespace

void restore_state(const std::vector<StateGroup>& groups, const std::vector<NamedTensor>& state, int64_t steps) {
  if (steps < 0) throw Error(Code::invalid, "[load_state] steps must not be negative, got " + std::to_string(steps));
  std::vector<std::pair<Tensor, Tensor>> copies;
  for (const NamedTensor& own : collect_state(groups)) copies.emplace_back(own.tensor, find(state, own));
  const NoGrad unrecorded;
  for (auto& [own, source] : copies) own.copy_(source);
}

std::vector<Tensor> zeros_for(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> zeros;
  for (const Tensor& parameter : parameters) zeros.push_back(zeros_like(parameter));
  return zeros;
}

void follow(Tensor& state, const Tensor& parameter) {
  if (state.defined() && state.device() != parameter.device()) state.move_to_(parameter.device());
}

}  // namespace plugrad::nn
