// Connectionist temporal classification: Graves et al., 2006.
#pragma once
#include <plugrad/ops/reduce.hpp>
#include <plugrad/tensor/tensor.hpp>

#include <cstdint>

namespace plugrad::nn {

// The negative logarithm of the probability of all alignments of targets with the steps of log_probs.
//
// log_probs (t, n, c): logarithms of the probabilities of c classes at each step. targets (n, s) i64: classes other than
// blank; elements behind a target's length are not read. input_lengths and target_lengths (n) i64. The loss (n) is infinite
// where a target needs more steps than its input has; its gradient is then 0, and with zero_infinity the loss is 0 too.
// Reduction::mean divides each loss by the target's length, or by 1 for an empty target, and takes the mean. The host reads
// no element, so it can be part of a compiled step: classes and lengths out of range are not found. Throws Error (invalid)
// for shapes and dtypes that do not fit.
struct PLUGRAD_API CTCLoss {
  int64_t blank = 0;
  Reduction reduction = Reduction::mean;
  bool zero_infinity = false;
  Tensor operator()(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                    const Tensor& target_lengths) const;
};

}  // namespace plugrad::nn
