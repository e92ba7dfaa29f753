// Pooling as modules; plugrad/ops/pooling.hpp defines the functions. Lists of numbers have a number for each spatial axis,
// or one number for all. An empty stride means kernel_size.
#pragma once
#include <plugrad/nn/module.hpp>
#include <plugrad/ops/pooling.hpp>

namespace plugrad::nn {

struct MaxPoolOptions {
  Shape stride{}, padding{0}, dilation{1};
  bool ceil_mode = false;
};
template <Tensor (*function)(const Tensor& x, const Shape& kernel_size, const Shape& stride, const Shape& padding,
                             const Shape& dilation, bool ceil_mode)>
class MaxPoolOf : public Module {
 public:
  explicit MaxPoolOf(const Shape& kernel_size, const MaxPoolOptions& options = {})
      : kernel_size_(kernel_size), options_(options) {}
  Tensor forward(const Tensor& x) const override {
    return function(x, kernel_size_, options_.stride, options_.padding, options_.dilation, options_.ceil_mode);
  }

 protected:
  std::string detail() const override { return "kernel_size=" + kernel_size_.text(); }

 private:
  Shape kernel_size_;
  MaxPoolOptions options_;
};
class PLUGRAD_API MaxPool1d final : public MaxPoolOf<plugrad::max_pool1d> {
  using MaxPoolOf::MaxPoolOf;
};
class PLUGRAD_API MaxPool2d final : public MaxPoolOf<plugrad::max_pool2d> {
  using MaxPoolOf::MaxPoolOf;
};
class PLUGRAD_API MaxPool3d final : public MaxPoolOf<plugrad::max_pool3d> {
  using MaxPoolOf::MaxPoolOf;
};

struct AvgPoolOptions {
  Shape stride{}, padding{0};
  bool ceil_mode = false, count_include_pad = true;
};
class PLUGRAD_API AvgPoolBase : public Module {
 protected:
  AvgPoolBase(const Shape& kernel_size, const AvgPoolOptions& options) : kernel_size_(kernel_size), options_(options) {}
  std::string detail() const override { return "kernel_size=" + kernel_size_.text(); }
  Shape kernel_size_;
  AvgPoolOptions options_;
};
class PLUGRAD_API AvgPool1d final : public AvgPoolBase {
 public:
  explicit AvgPool1d(const Shape& kernel_size, const AvgPoolOptions& options = {}) : AvgPoolBase(kernel_size, options) {}
  Tensor forward(const Tensor& x) const override;
};
class PLUGRAD_API AvgPool2d final : public AvgPoolBase {
 public:
  explicit AvgPool2d(const Shape& kernel_size, const AvgPoolOptions& options = {}) : AvgPoolBase(kernel_size, options) {}
  Tensor forward(const Tensor& x) const override;
};
class PLUGRAD_API AvgPool3d final : public AvgPoolBase {
 public:
  explicit AvgPool3d(const Shape& kernel_size, const AvgPoolOptions& options = {}) : AvgPoolBase(kernel_size, options) {}
  Tensor forward(const Tensor& x) const override;
};

// A given number of windows.
template <Tensor (*function)(const Tensor& x, const Shape& output_size)> class AdaptivePoolOf : public Module {
 public:
  explicit AdaptivePoolOf(const Shape& output_size) : output_size_(output_size) {}
  Tensor forward(const Tensor& x) const override { return function(x, output_size_); }

 protected:
  std::string detail() const override { return "output_size=" + output_size_.text(); }

 private:
  Shape output_size_;
};
class PLUGRAD_API AdaptiveAvgPool1d final : public AdaptivePoolOf<plugrad::adaptive_avg_pool1d> {
  using AdaptivePoolOf::AdaptivePoolOf;
};
class PLUGRAD_API AdaptiveAvgPool2d final : public AdaptivePoolOf<plugrad::adaptive_avg_pool2d> {
  using AdaptivePoolOf::AdaptivePoolOf;
};
class PLUGRAD_API AdaptiveAvgPool3d final : public AdaptivePoolOf<plugrad::adaptive_avg_pool3d> {
  using AdaptivePoolOf::AdaptivePoolOf;
};
class PLUGRAD_API AdaptiveMaxPool1d final : public AdaptivePoolOf<plugrad::adaptive_max_pool1d> {
  using AdaptivePoolOf::AdaptivePoolOf;
};
class PLUGRAD_API AdaptiveMaxPool2d final : public AdaptivePoolOf<plugrad::adaptive_max_pool2d> {
  using AdaptivePoolOf::AdaptivePoolOf;
};
class PLUGRAD_API AdaptiveMaxPool3d final : public AdaptivePoolOf<plugrad::adaptive_max_pool3d> {
  using AdaptivePoolOf::AdaptivePoolOf;
};

}  // namespace plugrad::nn
