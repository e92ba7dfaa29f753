#include <plugrad/nn/optimizer.hpp>

#include <core/nn/state.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/runtime/error.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace plugrad::nn {

Optimizer::Optimizer(std::vector<Tensor> parameters, double rate) : parameters_(std::move(parameters)), rate_(rate) {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].defined()) {
      throw Error(Code::invalid, "[optimizer] parameter " + std::to_string(i) + " is undefined");
    }
  }
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
