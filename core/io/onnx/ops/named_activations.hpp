#pragma once
#include <core/io/onnx/operator.hpp>

namespace plugrad::io::onnx {

// Applies the activation that the attribute `activation` names, with activation_params or activation_alpha and
// activation_beta. Returns x where the attribute is absent. Throws Error (unsupported).
Tensor named_activation(const Call& c, const Tensor& x);

}  // namespace plugrad::io::onnx
