// Normalisation as modules; plugrad/ops/normalization.hpp defines the functions. Weights start at 1 and biases at 0.
#pragma once
#include <plugrad/nn/module.hpp>

#include <optional>

namespace plugrad::nn {

struct LayerNormOptions {
  double eps = 1e-5;
  bool elementwise_affine = true, bias = true;
  DType dtype = DType::f32;
  Device device = default_device();
};
// Over the last axes of x, of extents normalized_shape.
class PLUGRAD_API LayerNorm final : public Module {
 public:
  explicit LayerNorm(const Shape& normalized_shape, const LayerNormOptions& options = {});
  void members(Members& all) override;
  Tensor forward(const Tensor& x) const override;
  Tensor weight, bias;

 protected:
  std::string detail() const override;

 private:
  Shape normalized_shape_;
  double eps_;
};

struct RMSNormOptions {
  std::optional<double> eps = std::nullopt;  // the distance from 1 to the next number of x's dtype
  bool elementwise_affine = true;
  DType dtype = DType::f32;
  Device device = default_device();
};
class PLUGRAD_API RMSNorm final : public Module {
 public:
  explicit RMSNorm(const Shape& normalized_shape, const RMSNormOptions& options = {});
  void members(Members& all) override;
  Tensor forward(const Tensor& x) const override;
  Tensor weight;

 protected:
  std::string detail() const override;

 private:
  Shape normalized_shape_;
  std::optional<double> eps_;
};

struct GroupNormOptions {
  double eps = 1e-5;
  bool affine = true;
  DType dtype = DType::f32;
  Device device = default_device();
};
// Over groups of the channels of x (n, c, ..).
class PLUGRAD_API GroupNorm final : public Module {
 public:
  GroupNorm(int64_t num_groups, int64_t num_channels, const GroupNormOptions& options = {});
  void members(Members& all) override;
  Tensor forward(const Tensor& x) const override;
  Tensor weight, bias;

 protected:
  std::string detail() const override;

 private:
  int64_t num_groups_, num_channels_;
  double eps_;
};

struct BatchNormOptions {
  double eps = 1e-5;
  std::optional<double> momentum = 0.1;  // left out: the running statistics are the means over all batches
  bool affine = true, track_running_stats = true;
  DType dtype = DType::f32;
  Device device = default_device();
};
// Members of the modules below: weight and bias, and the buffers running_mean, running_var and num_batches_tracked (i64).
class PLUGRAD_API StatisticsBase : public Module {
 public:
  void members(Members& all) override;
  Tensor weight, bias, running_mean, running_var, num_batches_tracked;

 protected:
  StatisticsBase(int64_t num_features, const BatchNormOptions& options);
  std::string detail() const override;
  // Counts a batch. Returns the fraction by which the running statistics move towards the batch's.
  double next_momentum() const;
  // Throws Error (invalid) unless least <= rank of x <= most.
  void require_rank(const Tensor& x, int least, int most) const;
  int64_t num_features_;
  BatchNormOptions options_;
};

// Normalises each channel of x (n, c) or (n, c, l) by the batch's statistics while training, and else by the running
// statistics.
class PLUGRAD_API BatchNorm1d : public StatisticsBase {
 public:
  explicit BatchNorm1d(int64_t num_features, const BatchNormOptions& options = {}) : StatisticsBase(num_features, options) {}
  Tensor forward(const Tensor& x) const override;

 protected:
  Tensor normalised(const Tensor& x, int least, int most) const;
};
// As BatchNorm1d, for x (n, c, h, w).
class PLUGRAD_API BatchNorm2d final : public BatchNorm1d {
 public:
  using BatchNorm1d::BatchNorm1d;
  Tensor forward(const Tensor& x) const override { return normalised(x, 4, 4); }
};
// As BatchNorm1d, for x (n, c, d, h, w).
class PLUGRAD_API BatchNorm3d final : public BatchNorm1d {
 public:
  using BatchNorm1d::BatchNorm1d;
  Tensor forward(const Tensor& x) const override { return normalised(x, 5, 5); }
};

}  // namespace plugrad::nn
