// Batch normalisation by the statistics of all ranks' batches.
#pragma once
#include <plugrad/distributed/process_group.hpp>
#include <plugrad/nn/normalizations.hpp>

namespace plugrad::distributed {

// As batch_norm in training, with the mean and variance over the x (n, c, ..) of all ranks of the group; n may differ, and
// be 0. All ranks call it, and all call backward() of what depends on the result. The gradients are those of the mean of
// the ranks' losses, weighted by n; a rank's own part is divided by its weight, which DataParallel multiplies. Throws Error
// (invalid) if shapes do not fit.
PLUGRAD_API Tensor sync_batch_norm(const Tensor& x, const Tensor& running_mean = {}, const Tensor& running_var = {},
                                   const Tensor& weight = {}, const Tensor& bias = {}, double momentum = 0.1,
                                   double eps = 1e-5, const Group& group = {});

// BatchNorm1d, 2d or 3d, for x (n, c, ..), which normalises by sync_batch_norm while training in a group of processes.
class PLUGRAD_API SyncBatchNorm final : public nn::StatisticsBase {
 public:
  // group: undefined: all ranks, or this process alone without init_process_group.
  explicit SyncBatchNorm(int64_t num_features, const nn::BatchNormOptions& options = {}, const Group& group = {})
      : StatisticsBase(num_features, options), group_(group) {}
  Tensor forward(const Tensor& x) const override;

 private:
  Group group_;
};

}  // namespace plugrad::distributed
