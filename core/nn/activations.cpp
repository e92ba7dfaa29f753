#include <plugrad/nn/activations.hpp>

#include <plugrad/ops/factories.hpp>
#include <plugrad/runtime/error.hpp>

namespace plugrad::nn {

PReLU::PReLU(int64_t num_parameters, double init, DType dtype, Device device) {
  if (num_parameters < 1)
    throw Error(Code::invalid, "[prelu] num_parameters must be at least 1, got " + std::to_string(num_parameters));
  weight = full({num_parameters}, init, dtype, device).requires_grad_();
}

void PReLU::members(Members& all) { all("weight", weight); }

}  // namespace plugrad::nn
