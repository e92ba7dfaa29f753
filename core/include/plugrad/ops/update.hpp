// Optimiser steps, in place and unrecorded. They run a fused kernel if the device has it, else several kernels for the same
// step; SGD with weight decay and without momentum always runs several.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <memory>

namespace plugrad {

struct SgdStep {
  double rate, momentum = 0, weight_decay = 0;
  bool nesterov = false;
};
// velocity has param's shape, dtype and device; it may be undefined if momentum is 0.
PLUGRAD_API void sgd_step(Tensor& param, Tensor& velocity, const Tensor& grad, const SgdStep& step);

struct AdamStep {
  double rate, beta1, beta2, epsilon, weight_decay;
  bool decoupled;  // AdamW
  int64_t number;  // of this step, from 1; the bias corrections use it
};
PLUGRAD_API void adam_step(Tensor& param, Tensor& m, Tensor& v, const Tensor& grad, const AdamStep& step);

// Steps of several parameters. If the device may take a step in one submission with other steps, the step is pending until
// run(), and is dropped without run(); all other steps run at once.
class PLUGRAD_API Updates {
 public:
  Updates();
  ~Updates();
  Updates(const Updates&) = delete;
  void sgd_step(Tensor& param, Tensor& velocity, const Tensor& grad, const SgdStep& step);
  void adam_step(Tensor& param, Tensor& m, Tensor& v, const Tensor& grad, const AdamStep& step);
  void run();

  struct Pending;

 private:
  Pending* pending(const Tensor& param);
  std::unique_ptr<Pending> pending_;  // null until a device may take several steps together
};

}  // namespace plugrad
