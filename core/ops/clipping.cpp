#include <plugrad/ops/clipping.hpp>

#include <core/ops/argument.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/activations.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/statistics.hpp>
#include <plugrad/ops/views.hpp>

namespace plugrad {
namespace {
std::vector<Tensor> gradients_of(const char* name, const std::vector<Tensor>& parameters) {
  std::vector<Tensor> all;
  for (const Tensor& each : parameters) {
    require_defined(each, name);
    if (each.grad().defined() && each.grad().count()) all.push_back(each.grad());
  }
  return all;
}
}  // namespace

Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type) {
  const NoGrad unrecorded;
  std::vector<Tensor> gradients = gradients_of("clip_grad_norm_", parameters), norms;
  if (gradients.empty()) return scalar(0);
  const Tensor& first = gradients.front();
  for (const Tensor& each : gradients) norms.push_back(to(cast(norm(each, norm_type), first.dtype()), first.device()));
  const Tensor total = norm(stack(norms), norm_type), factor = minimum(div(max_norm, add(total, 1e-6)), 1);
  for (Tensor& each : gradients) each.copy_(mul(each, to(cast(factor, each.dtype()), each.device())));
  return total;
}

void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value) {
  if (!(clip_value >= 0)) throw Error(Code::invalid, "[clip_grad_value_] the limit is negative or NaN: give 0 or more");
  const NoGrad unrecorded;
  for (Tensor& each : gradients_of("clip_grad_value_", parameters)) each.copy_(clamp(each, -clip_value, clip_value));
}

}  // namespace plugrad
