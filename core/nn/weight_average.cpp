#include <plugrad/nn/weight_average.hpp>

#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/arithmetic.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/runtime/error.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace plugrad::nn {

WeightAverage::WeightAverage(std::vector<Tensor> parameters, std::optional<double> decay)
    : parameters_(std::move(parameters)), decay_(decay) {
  if (parameters_.empty()) throw Error(Code::invalid, "[WeightAverage] no parameters were given");
  if (decay_ && !(*decay_ >= 0 && *decay_ <= 1))
    throw Error(Code::invalid, "[WeightAverage] decay is " + std::to_string(*decay_) + ": expected a number in [0, 1]");
  for (const Tensor& each : parameters_) averages_.push_back(clone(each.detach()));
  count_ = zeros({}, DType::i64, parameters_[0].device());
}

void WeightAverage::update() {
  const NoGrad unrecorded;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor now = parameters_[i].detach();
    const Tensor n = count_.device() == now.device() ? count_ : to(count_, now.device());
    Tensor& average = averages_[i];
    const Tensor moved =
        decay_ ? lerp(average, now, 1 - *decay_) : add(average, div(sub(now, average), add(cast(n, now.dtype()), 1)));
    average.copy_(where(eq(n, 0), now, moved));
  }
  count_.add_(ones_like(count_));
}

int64_t WeightAverage::updates() const { return count_.item<int64_t>(); }

void WeightAverage::exchange() {
  const NoGrad unrecorded;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor kept = clone(parameters_[i].detach());
    parameters_[i].copy_(averages_[i]);
    averages_[i].copy_(kept);
  }
}

std::vector<NamedTensor> WeightAverage::state() const {
  std::vector<NamedTensor> all{{"n_averaged", count_}};
  for (size_t i = 0; i < averages_.size(); ++i) all.push_back({"average." + std::to_string(i), averages_[i]});
  return all;
}

void WeightAverage::load_state(const std::vector<NamedTensor>& given) {
  std::vector<std::pair<Tensor, Tensor>> copies;
  for (const auto& [name, own] : state()) {
    const auto found = std::ranges::find(given, name, &NamedTensor::name);
    if (found == given.end() || !found->tensor.defined())
      throw Error(Code::invalid, "[load_state] tensor " + name + " is missing");
    if (found->tensor.shape() != own.shape() || found->tensor.dtype() != own.dtype())
      throw Error(Code::invalid, "[load_state] tensor " + name + " is " + dtype_name(found->tensor.dtype()) + " " +
                                     found->tensor.shape().text() + ", expected " + dtype_name(own.dtype()) + " " +
                                     own.shape().text());
    copies.emplace_back(own, found->tensor);
  }
  const NoGrad unrecorded;
  for (auto& [own, source] : copies) own.copy_(source);
}

}  // namespace plugrad::nn
