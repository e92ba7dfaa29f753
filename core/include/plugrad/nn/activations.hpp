// Activation functions as modules; plugrad/ops/activations.hpp, smooth.hpp and piecewise.hpp define the functions.
#pragma once
#include <plugrad/nn/module.hpp>
#include <plugrad/ops/activations.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/piecewise.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/smooth.hpp>

namespace plugrad::nn {

// A function of a tensor, without parameters.
template <Tensor (*function)(const Tensor& x)> class FunctionOf : public Module {
 public:
  Tensor forward(const Tensor& x) const override { return function(x); }
};
class PLUGRAD_API ReLU final : public FunctionOf<plugrad::relu> {};
class PLUGRAD_API ReLU6 final : public FunctionOf<plugrad::relu6> {};
class PLUGRAD_API SELU final : public FunctionOf<plugrad::selu> {};
class PLUGRAD_API SiLU final : public FunctionOf<plugrad::silu> {};
class PLUGRAD_API Mish final : public FunctionOf<plugrad::mish> {};
class PLUGRAD_API Tanh final : public FunctionOf<plugrad::tanh> {};
class PLUGRAD_API Sigmoid final : public FunctionOf<plugrad::sigmoid> {};
class PLUGRAD_API LogSigmoid final : public FunctionOf<plugrad::logsigmoid> {};
class PLUGRAD_API Hardsigmoid final : public FunctionOf<plugrad::hardsigmoid> {};
class PLUGRAD_API Hardswish final : public FunctionOf<plugrad::hardswish> {};
class PLUGRAD_API Softsign final : public FunctionOf<plugrad::softsign> {};
class PLUGRAD_API Tanhshrink final : public FunctionOf<plugrad::tanhshrink> {};

// A function of a tensor and a number.
template <Tensor (*function)(const Tensor& x, double number)> class FunctionWith : public Module {
 public:
  explicit FunctionWith(double number) : number_(number) {}
  Tensor forward(const Tensor& x) const override { return function(x, number_); }

 protected:
  std::string detail() const override { return number_text(number_); }

 private:
  double number_;
};
class PLUGRAD_API ELU final : public FunctionWith<plugrad::elu> {
 public:
  explicit ELU(double alpha = 1) : FunctionWith(alpha) {}
};
class PLUGRAD_API CELU final : public FunctionWith<plugrad::celu> {
 public:
  explicit CELU(double alpha = 1) : FunctionWith(alpha) {}
};
class PLUGRAD_API LeakyReLU final : public FunctionWith<plugrad::leaky_relu> {
 public:
  explicit LeakyReLU(double negative_slope = 0.01) : FunctionWith(negative_slope) {}
};
class PLUGRAD_API Softshrink final : public FunctionWith<plugrad::softshrink> {
 public:
  explicit Softshrink(double lambd = 0.5) : FunctionWith(lambd) {}
};
class PLUGRAD_API Hardshrink final : public FunctionWith<plugrad::hardshrink> {
 public:
  explicit Hardshrink(double lambd = 0.5) : FunctionWith(lambd) {}
};

// A function along an axis.
template <Tensor (*function)(const Tensor& x, int axis)> class FunctionAlong : public Module {
 public:
  explicit FunctionAlong(int dim = -1) : dim_(dim) {}
  Tensor forward(const Tensor& x) const override { return function(x, dim_); }

 protected:
  std::string detail() const override { return "dim=" + std::to_string(dim_); }

 private:
  int dim_;
};
class PLUGRAD_API Softmax final : public FunctionAlong<plugrad::softmax> {
  using FunctionAlong::FunctionAlong;
};
class PLUGRAD_API LogSoftmax final : public FunctionAlong<plugrad::log_softmax> {
  using FunctionAlong::FunctionAlong;
};
class PLUGRAD_API Softmin final : public FunctionAlong<plugrad::softmin> {
  using FunctionAlong::FunctionAlong;
};
class PLUGRAD_API GLU final : public FunctionAlong<plugrad::glu> {
  using FunctionAlong::FunctionAlong;
};

class PLUGRAD_API GELU final : public Module {
 public:
  explicit GELU(Approximation approximate = Approximation::none) : approximate_(approximate) {}
  Tensor forward(const Tensor& x) const override { return gelu(x, approximate_); }

 private:
  Approximation approximate_;
};
class PLUGRAD_API Softplus final : public Module {
 public:
  explicit Softplus(double beta = 1, double threshold = 20) : beta_(beta), threshold_(threshold) {}
  Tensor forward(const Tensor& x) const override { return softplus(x, beta_, threshold_); }

 private:
  double beta_, threshold_;
};
class PLUGRAD_API Hardtanh final : public Module {
 public:
  explicit Hardtanh(double min_val = -1, double max_val = 1) : min_val_(min_val), max_val_(max_val) {}
  Tensor forward(const Tensor& x) const override { return hardtanh(x, min_val_, max_val_); }

 private:
  double min_val_, max_val_;
};
// x where it is positive, else weight x, for a trained weight: one number, or a number for each channel.
class PLUGRAD_API PReLU final : public Module {
 public:
  explicit PReLU(int64_t num_parameters = 1, double init = 0.25, DType dtype = DType::f32, Device device = default_device());
  void members(Members& all) override;
  Tensor forward(const Tensor& x) const override { return prelu(x, weight); }
  Tensor weight;
};

}  // namespace plugrad::nn
