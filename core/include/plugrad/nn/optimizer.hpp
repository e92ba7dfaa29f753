// Optimisers. They skip parameters that have no gradient or were frozen by requires_grad_(false).
#pragma once
#include <plugrad/nn/module.hpp>
#include <plugrad/tensor/tensor.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace plugrad::nn {

// Not thread-safe.
class PLUGRAD_API Optimizer {
 public:
  // The parameters are leaves that require gradients, or did so (is_parameter). Throws Error (invalid) for other tensors,
  // and for a rate that is negative or not finite.
  Optimizer(std::vector<Tensor> parameters, double rate);
  virtual ~Optimizer();
  // Makes one step with the current gradients. Records no graph.
  virtual void step() = 0;
  void clear_grad();
  double rate() const { return rate_; }
  // Throws Error (invalid) for a rate that is negative or not finite.
  void set_rate(double rate);
  // The tensors that a checkpoint stores besides the parameters and steps(), by name ("exp_avg.0").
  virtual std::vector<NamedTensor> state() const = 0;
  // Restores both. If a tensor is missing or has another shape, throws Error (invalid) with its name and changes nothing.
  virtual void load_state(const std::vector<NamedTensor>& state, int64_t steps) = 0;
  int64_t steps() const { return steps_; }

 protected:
  // The gradient that a step uses; undefined for a parameter that the step skips.
  static Tensor gradient_of(const Tensor& parameter);
  std::vector<Tensor> parameters_;
  double rate_;
  int64_t steps_ = 0;
};

struct SgdOptions {
  double momentum = 0, weight_decay = 0;
  bool nesterov = false;
};
// Computes the same steps as torch.optim.SGD with dampening 0. Throws Error (invalid) for nesterov without momentum and for
// options that are negative or not finite.
class PLUGRAD_API Sgd final : public Optimizer {
 public:
  Sgd(std::vector<Tensor> parameters, double rate, SgdOptions options = {});
  void step() override;
  std::vector<NamedTensor> state() const override;
  void load_state(const std::vector<NamedTensor>& state, int64_t steps) override;
  const SgdOptions& options() const { return options_; }

 private:
  SgdOptions options_;
  std::vector<Tensor> velocity_;
};

struct AdamOptions {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0;
};
// Computes the same steps as torch.optim.Adam, and counts them for each parameter. AdamW decouples the weight decay. Throws
// Error (invalid) for betas outside [0, 1) and for other options that are negative or not finite.
class PLUGRAD_API Adam : public Optimizer {
 public:
  Adam(std::vector<Tensor> parameters, double rate, AdamOptions options = {});
  void step() override;
  std::vector<NamedTensor> state() const override;
  void load_state(const std::vector<NamedTensor>& state, int64_t steps) override;
  const AdamOptions& options() const { return options_; }

 protected:
  Adam(std::vector<Tensor> parameters, double rate, AdamOptions options, bool decoupled);

 private:
  AdamOptions options_;
  bool decoupled_;
  std::vector<Tensor> m_, v_;
  std::vector<int64_t> taken_;  // steps of each parameter: without a gradient it takes none
};
class PLUGRAD_API AdamW final : public Adam {
 public:
  AdamW(std::vector<Tensor> parameters, double rate, AdamOptions options = {.weight_decay = 0.01});
};

// The learning rate of a cosine schedule at `step` of `steps`, from base down to floor: Loshchilov and Hutter, SGDR, 2017.
PLUGRAD_API double cosine_rate(double base, int64_t step, int64_t steps, double floor = 0);

}  // namespace plugrad::nn
