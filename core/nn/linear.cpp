#include <plugrad/nn/module.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/error.hpp>

#include <cmath>

namespace plugrad::nn {

Linear::Linear(int64_t in, int64_t out, bool with_bias, DType dtype, Device device) {
  if (in < 1 || out < 1) {
    throw Error(Code::invalid,
                "[linear] sizes must be at least 1: in " + std::to_string(in) + ", out " + std::to_string(out));
  }
  const double bound = 1 / std::sqrt(static_cast<double>(in));
  weight = rand({out, in}, dtype, device, -bound, bound).requires_grad_();
  if (with_bias) bias = rand({out}, dtype, device, -bound, bound).requires_grad_();
}

Tensor Linear::forward(const Tensor& x) const {
  if (!x.defined() || x.rank() < 1 || x.size(-1) != weight.size(1)) {
    throw Error(Code::invalid, "[linear] x must have shape (.., " + std::to_string(weight.size(1)) + "), got " +
                                   (x.defined() ? x.shape().text() : std::string("an undefined tensor")));
  }
  Tensor product = matmul(x, transpose(weight));
  return bias.defined() ? product + bias : product;
}

std::string Linear::text() const {
  const std::string sizes = std::to_string(weight.size(1)) + ", " + std::to_string(weight.size(0));
  return "Linear(" + sizes + (bias.defined() ? ")" : ", bias=false)");
}

std::vector<NamedTensor> Linear::named_parameters() const {
  std::vector<NamedTensor> all{{"weight", weight}};
  if (bias.defined()) all.push_back({"bias", bias});
  return all;
}

}  // namespace plugrad::nn
