// Modules: functions of tensors with parameters.
#pragma once
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/tensor/tensor.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace plugrad::nn {

struct NamedTensor {
  std::string name;  // "0.weight"
  Tensor tensor;
};

// Several threads may call forward at once, unless one of them changes parameters.
class PLUGRAD_API Module {
 public:
  virtual ~Module();
  virtual Tensor forward(const Tensor& x) const = 0;
  Tensor operator()(const Tensor& x) const { return forward(x); }
  // "Linear(784, 512)"
  virtual std::string text() const = 0;
  // All parameters with their names, own ones first. The tensors are handles: writing one in place changes the module.
  virtual std::vector<NamedTensor> named_parameters() const { return {}; }
  std::vector<Tensor> parameters() const;
  void clear_grad();
  // Moves the parameters to a device. Their leaves stay the same, so an optimiser's handles remain valid.
  void to(Device device);
};

// y = x W^T + b for x (.., in) -> (.., out); W (out, in), b (out). Both start uniform in +-1/sqrt(in), as in PyTorch.
class PLUGRAD_API Linear final : public Module {
 public:
  Linear(int64_t in, int64_t out, bool bias = true, DType dtype = DType::f32, Device device = default_device());
  Tensor forward(const Tensor& x) const override;
  std::string text() const override;
  std::vector<NamedTensor> named_parameters() const override;
  Tensor weight, bias;
};

// An activation: a function without parameters.
class PLUGRAD_API Activation final : public Module {
 public:
  Activation(std::string name, Tensor (*function)(const Tensor&)) : name_(std::move(name)), function_(function) {}
  Tensor forward(const Tensor& x) const override { return function_(x); }
  std::string text() const override { return name_ + "()"; }

 private:
  std::string name_;
  Tensor (*function_)(const Tensor&);
};
PLUGRAD_API std::shared_ptr<Module> relu();
PLUGRAD_API std::shared_ptr<Module> tanh();
PLUGRAD_API std::shared_ptr<Module> sigmoid();

// Applies modules one after another. Parameters are named by position: "0.weight".
class PLUGRAD_API Sequential final : public Module {
 public:
  explicit Sequential(std::vector<std::shared_ptr<Module>> modules) : modules_(std::move(modules)) {}
  Tensor forward(const Tensor& x) const override;
  std::string text() const override;
  std::vector<NamedTensor> named_parameters() const override;
  size_t size() const { return modules_.size(); }
  Module& operator[](size_t i) const { return *modules_.at(i); }

 private:
  std::vector<std::shared_ptr<Module>> modules_;
};

}  // namespace plugrad::nn
