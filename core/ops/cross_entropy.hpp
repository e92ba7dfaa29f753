// Parts of the losses of classes.
#pragma once
#include <plugrad/ops/reduce.hpp>

namespace plugrad {

struct ClassOptions {
  Tensor weight;  // of each class, or undefined
  std::optional<int64_t> ignore_index;
  double label_smoothing = 0;
};

// ignore_index, or nothing if no target equals it and the host can see this in its own memory, without waiting.
std::optional<int64_t> ignored_in(const Tensor& targets, std::optional<int64_t> ignore_index);

// The mean or the sum of all elements, or the elements.
Tensor reduced(const Tensor& losses, Reduction reduction);
// The losses (n) of logits (n, c) and i64 targets (n), in the dtype of the accumulator. Throws Error (invalid) for other
// shapes.
Tensor row_losses(const Tensor& x, const Tensor& target);
// cross_entropy for all arguments except the plain case: logits of rank 2, i64 targets, and no options. The result has the
// dtype of the accumulator.
Tensor general_cross_entropy(const Tensor& logits, const Tensor& targets, Reduction reduction, const ClassOptions& options);

}  // namespace plugrad
