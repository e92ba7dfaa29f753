// The operators by topic. Each mapping follows ONNX's definition of its operator, for all versions of the operator:
// https://onnx.ai/onnx/operators. Operators of com.microsoft:
// https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md.
#pragma once
#include <core/io/onnx/operator.hpp>

#include <span>

namespace plugrad::io::onnx {

std::span<const Operator> activation_operators();
std::span<const Operator> attention_operators();
std::span<const Operator> combining_operators();
std::span<const Operator> constant_operators();
std::span<const Operator> contrib_operators();
std::span<const Operator> control_operators();
std::span<const Operator> convolution_operators();
std::span<const Operator> elementwise_operators();
std::span<const Operator> indexing_operators();
std::span<const Operator> integer_operators();
std::span<const Operator> loss_operators();
std::span<const Operator> normalization_operators();
std::span<const Operator> pooling_operators();
std::span<const Operator> product_operators();
std::span<const Operator> quantization_operators();
std::span<const Operator> quantized_contrib_operators();
std::span<const Operator> random_operators();
std::span<const Operator> recurrent_operators();
std::span<const Operator> reduction_operators();
std::span<const Operator> region_operators();
std::span<const Operator> resizing_operators();
std::span<const Operator> scatter_operators();
std::span<const Operator> sequence_operators();
std::span<const Operator> shape_operators();
std::span<const Operator> signal_operators();
std::span<const Operator> training_operators();

}  // namespace plugrad::io::onnx
