// Reductions. axes: which to reduce, negative ones from the end; none given means all. keepdim keeps them with extent 1.
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// Sums of bool and i64 give i64. Over nothing: 0.
PLUGRAD_API Tensor sum(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
// Floating dtypes. Over nothing: NaN.
PLUGRAD_API Tensor mean(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
// Largest and smallest; the gradient is shared equally among ties. Over nothing: an error.
PLUGRAD_API Tensor max(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
PLUGRAD_API Tensor min(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
// i64: the row-major index, within the reduced axes, of the first largest. Over nothing: an error.
PLUGRAD_API Tensor argmax(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
// x - ln sum e^x along one axis.
PLUGRAD_API Tensor log_softmax(const Tensor& x, int axis = -1);

enum class Reduction { none, mean, sum };
// The negative log-likelihood of targets (n), i64, under logits (n, c): of softmax over the last axis. none gives (n).
PLUGRAD_API Tensor cross_entropy(const Tensor& logits, const Tensor& targets, Reduction reduction = Reduction::mean);

}  // namespace plugrad
