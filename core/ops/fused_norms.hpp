// Normalisation by ops with a single pass over memory, with their gradients.
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// y, recorded, and the rows' statistics (n), unrecorded.
struct NormalisedRows {
  Tensor y, mean, rstd;
};
// LAYER_NORM of the rows of x (n, d); weight and bias (d) share its device and dtype. y is undefined if the device lacks the
// op.
NormalisedRows fused_layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps);
// The same for RMS_NORM, without a mean.
NormalisedRows fused_rms_norm(const Tensor& x, const Tensor& weight, double eps);

// y, recorded, and the channels' statistics (c), unrecorded.
struct NormalisedChannels {
  Tensor y, mean, variance;
};
// BATCH_NORM of x (n, c, s); weight and bias (c) share its device and dtype. y is undefined if the device lacks the op.
NormalisedChannels fused_batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps);

}  // namespace plugrad
