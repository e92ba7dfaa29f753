// Steps of optimisers, in place and without recording. A step runs as a fused kernel if the device has the kernel, else as
// several kernels; SGD with weight decay and without momentum always runs as several kernels.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <memory>

namespace plugrad {

struct SgdStep {
  double rate, momentum = 0, weight_decay = 0;
  bool nesterov = false;
};
// Updates param by SGD. velocity has param's shape, dtype and device; it may be undefined if momentum is 0.
PLUGRAD_API void sgd_step(Tensor& param, Tensor& velocity, const Tensor& grad, const SgdStep& step);

struct AdamStep {
  double rate, beta1, beta2, epsilon, weight_decay;
  bool decoupled;  // AdamW
  int64_t number;  // of this step, from 1; the bias corrections use it
};
PLUGRAD_API void adam_step(Tensor& param, Tensor& m, Tensor& v, const Tensor& grad, const AdamStep& step);

// Steps of several parameters. If the device may run several steps in one submission, a step is pending until run() and is
// dropped without run(). On other devices steps run at once.
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
