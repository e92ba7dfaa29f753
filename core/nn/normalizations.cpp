#include <plugrad/nn/normalizations.hpp>

#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/normalization.hpp>
#include <plugrad/runtime/error.hpp>

#include <utility>

namespace plugrad::nn {
namespace {
template <class Options> Tensor parameter_of(const Shape& shape, double value, const Options& options) {
  return full(shape, value, options.dtype, options.device).requires_grad_();
}
}  // namespace

LayerNorm::LayerNorm(const Shape& normalized_shape, const LayerNormOptions& options)
    : normalized_shape_(normalized_shape), eps_(options.eps) {
  if (!options.elementwise_affine) return;
  weight = parameter_of(normalized_shape, 1, options);
  if (options.bias) bias = parameter_of(normalized_shape, 0, options);
}
void LayerNorm::members(Members& all) { all("weight", weight), all("bias", bias); }
Tensor LayerNorm::forward(const Tensor& x) const { return layer_norm(x, normalized_shape_, weight, bias, eps_); }
std::string LayerNorm::detail() const { return normalized_shape_.text(); }

RMSNorm::RMSNorm(const Shape& normalized_shape, const RMSNormOptions& options)
    : normalized_shape_(normalized_shape), eps_(options.eps) {
  if (options.elementwise_affine) weight = parameter_of(normalized_shape, 1, options);
}
void RMSNorm::members(Members& all) { all("weight", weight); }
Tensor RMSNorm::forward(const Tensor& x) const { return rms_norm(x, normalized_shape_, weight, eps_); }
std::string RMSNorm::detail() const { return normalized_shape_.text(); }

GroupNorm::GroupNorm(int64_t num_groups, int64_t num_channels, const GroupNormOptions& options)
    : num_groups_(num_groups), num_channels_(num_channels), eps_(options.eps) {
  if (num_groups < 1 || num_channels < 1 || num_channels % num_groups)
    throw Error(Code::invalid, "[group_norm] " + std::to_string(num_groups) + " groups do not divide " +
                                   std::to_string(num_channels) + " channels");
  if (!options.affine) return;
  weight = parameter_of({num_channels}, 1, options);
  bias = parameter_of({num_channels}, 0, options);
}
void GroupNorm::members(Members& all) { all("weight", weight), all("bias", bias); }
Tensor GroupNorm::forward(const Tensor& x) const { return group_norm(x, num_groups_, weight, bias, eps_); }
std::string GroupNorm::detail() const { return std::to_string(num_groups_) + ", " + std::to_string(num_channels_); }

// --- Batches.

StatisticsBase::StatisticsBase(int64_t num_features, const BatchNormOptions& options)
    : num_features_(num_features), options_(options) {
  if (num_features < 1)
    throw Error(Code::invalid,
                "[batch_norm] the number of channels must be at least 1, got " + std::to_string(num_features));
  if (options.affine) {
    weight = parameter_of({num_features}, 1, options);
    bias = parameter_of({num_features}, 0, options);
  }
  if (!options.track_running_stats) return;
  running_mean = zeros({num_features}, options.dtype, options.device);
  running_var = ones({num_features}, options.dtype, options.device);
  num_batches_tracked = zeros({}, DType::i64, options.device);
}

void StatisticsBase::members(Members& all) {
  all("weight", weight), all("bias", bias);
  all.buffer("running_mean", running_mean), all.buffer("running_var", running_var);
  all.buffer("num_batches_tracked", num_batches_tracked);
}

std::string StatisticsBase::detail() const { return std::to_string(num_features_); }

double StatisticsBase::next_momentum() const {
  if (!training() || !num_batches_tracked.defined()) return options_.momentum.value_or(0);
  const NoGrad unrecorded;
  Tensor count = num_batches_tracked;
  count.add_(ones({}, DType::i64, count.device()));
  return options_.momentum ? *options_.momentum : 1 / count.item<double>();
}

void StatisticsBase::require_rank(const Tensor& x, int least, int most) const {
  if (x.defined() && x.rank() >= least && x.rank() <= most) return;
  throw Error(Code::invalid, "[batch_norm] " + text() + " takes x of rank " + std::to_string(least) +
                                 (most > least ? " or " + std::to_string(most) : std::string()) + ", got " +
                                 (x.defined() ? x.shape().text() : std::string("an undefined tensor")));
}

Tensor BatchNorm1d::normalised(const Tensor& x, int least, int most) const {
  require_rank(x, least, most);
  const bool by_batch = training() || !running_mean.defined();
  return batch_norm(x, running_mean, running_var, weight, bias, by_batch, next_momentum(), options_.eps);
}

Tensor BatchNorm1d::forward(const Tensor& x) const { return normalised(x, 2, 3); }

}  // namespace plugrad::nn
