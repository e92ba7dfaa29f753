// Convolutions as modules; plugrad/ops/convolution.hpp defines the functions. Weight and bias start uniform in +-1/sqrt(f),
// where f is the number of elements of x per result, as in PyTorch. Lists of numbers have a number for each spatial axis, or
// one number for all. Constructors throw Error (invalid) for sizes below 1, and for groups that do not divide the channels.
#pragma once
#include <plugrad/nn/module.hpp>

namespace plugrad::nn {

struct ConvolutionOptions {
  Shape stride{1}, padding{0}, dilation{1};
  int64_t groups = 1;
  bool bias = true;
  Shape output_padding{0};  // of transposed convolutions
  DType dtype = DType::f32;
  Device device = default_device();
};

class PLUGRAD_API ConvolutionBase : public Module {
 public:
  void members(Members& all) override;
  Tensor weight, bias;

 protected:
  ConvolutionBase(int axes, bool transposed, int64_t in_channels, int64_t out_channels, const Shape& kernel_size,
                  const ConvolutionOptions& options);
  std::string detail() const override;
  ConvolutionOptions options_;

 private:
  int64_t in_channels_, out_channels_;
  Shape kernel_size_;
};

// x (n, in, l), or (in, l); weight (out, in / groups, k), bias (out).
class PLUGRAD_API Conv1d final : public ConvolutionBase {
 public:
  Conv1d(int64_t in_channels, int64_t out_channels, const Shape& kernel_size, const ConvolutionOptions& options = {})
      : ConvolutionBase(1, false, in_channels, out_channels, kernel_size, options) {}
  Tensor forward(const Tensor& x) const override;
};
class PLUGRAD_API Conv2d final : public ConvolutionBase {
 public:
  Conv2d(int64_t in_channels, int64_t out_channels, const Shape& kernel_size, const ConvolutionOptions& options = {})
      : ConvolutionBase(2, false, in_channels, out_channels, kernel_size, options) {}
  Tensor forward(const Tensor& x) const override;
};
class PLUGRAD_API Conv3d final : public ConvolutionBase {
 public:
  Conv3d(int64_t in_channels, int64_t out_channels, const Shape& kernel_size, const ConvolutionOptions& options = {})
      : ConvolutionBase(3, false, in_channels, out_channels, kernel_size, options) {}
  Tensor forward(const Tensor& x) const override;
};

// x (n, in, l), or (in, l); weight (in, out / groups, k), bias (out).
class PLUGRAD_API ConvTranspose1d final : public ConvolutionBase {
 public:
  ConvTranspose1d(int64_t in_channels, int64_t out_channels, const Shape& kernel_size,
                  const ConvolutionOptions& options = {})
      : ConvolutionBase(1, true, in_channels, out_channels, kernel_size, options) {}
  Tensor forward(const Tensor& x) const override;
};
class PLUGRAD_API ConvTranspose2d final : public ConvolutionBase {
 public:
  ConvTranspose2d(int64_t in_channels, int64_t out_channels, const Shape& kernel_size,
                  const ConvolutionOptions& options = {})
      : ConvolutionBase(2, true, in_channels, out_channels, kernel_size, options) {}
  Tensor forward(const Tensor& x) const override;
};
class PLUGRAD_API ConvTranspose3d final : public ConvolutionBase {
 public:
  ConvTranspose3d(int64_t in_channels, int64_t out_channels, const Shape& kernel_size,
                  const ConvolutionOptions& options = {})
      : ConvolutionBase(3, true, in_channels, out_channels, kernel_size, options) {}
  Tensor forward(const Tensor& x) const override;
};

}  // namespace plugrad::nn
