// Parts of the losses of classes.
#pragma once
#include <plugrad/ops/reduce.hpp>

namespace plugrad {

struct ClassOptions {
  Tensor weight;  // of each class, or undefined
  std::optional<int64_t> ignore_index;
  double label_smoothing = 0;
};

// ignore_index, or nothing where the host sees at once that no target has it: in memory of its own, without waiting.
std::optional<int64_t> ignored_in(const Tensor& targets, std::optional<int64_t> ignore_index);

// The mean or the sum of all elements, or the elements.
Tensor reduced(const Tensor& losses, Reduction reduction);
// cross_entropy for all arguments but the plain ones.
Tensor general_cross_entropy(const Tensor& logits, const Tensor& targets, Reduction reduction, const ClassOptions& options);

}  // namespace plugrad
