// Optimisers, by PyTorch's names and formulas. Each has the options lr and, unless noted, weight_decay and maximize (0 or
// 1): with maximize, a step ascends. Constructors throw Error (invalid) for an option out of range; the message names it.
#pragma once
#include <plugrad/nn/optimizer.hpp>

namespace plugrad::nn {

struct SGDOptions {
  double momentum = 0, weight_decay = 0;
  bool nesterov = false;
  double dampening = 0;
  bool maximize = false;
};
// Computes the same steps as torch.optim.SGD. Options: lr, momentum, weight_decay, nesterov (0 or 1), dampening, maximize.
// Throws Error (invalid) for nesterov without momentum, and for nesterov with dampening. A step with dampening is not fused.
class PLUGRAD_API SGD final : public Optimizer {
 public:
  SGD(ParameterGroups parameters, double lr = 1e-3, SGDOptions options = {});

 private:
  void update(const Update& update, Updates& together) override;
  void update_dampened(const Update& update);
  bool has_slot(size_t slot, std::span<const double> options) const override;
  bool is_counted() const override;
  void loaded() override;
  void check(std::span<const double> options, const std::vector<Tensor>& parameters) const override;
};

struct AdamOptions {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0;
  bool amsgrad = false, maximize = false;
  bool decoupled_weight_decay = false;  // AdamW ignores it
};
// Computes the same steps as torch.optim.Adam, and counts them for each parameter. Options: lr, beta1 and beta2, below 1,
// eps, weight_decay, amsgrad (0 or 1): divides by the largest mean of squares so far (Reddi et al., 2018), without the fused
// step; maximize, decoupled_weight_decay. AdamW decouples the weight decay.
class PLUGRAD_API Adam : public Optimizer {
 public:
  Adam(ParameterGroups parameters, double lr = 1e-3, AdamOptions options = {});

 protected:
  Adam(const char* name, ParameterGroups parameters, double lr, AdamOptions options);

 private:
  void update(const Update& update, Updates& together) override;
  void update_by_largest(const Update& update);
  bool has_slot(size_t slot, std::span<const double> options) const override;
};
class PLUGRAD_API AdamW final : public Adam {
 public:
  AdamW(ParameterGroups parameters, double lr = 1e-3, AdamOptions options = {.weight_decay = 0.01});
};

struct RMSpropOptions {
  double alpha = 0.99, epsilon = 1e-8, weight_decay = 0, momentum = 0;
  bool centered = false, maximize = false;
};
// Computes the same steps as torch.optim.RMSprop. Options: lr, alpha, below 1, eps, weight_decay, momentum, centered (0 or
// 1), maximize.
class PLUGRAD_API RMSprop final : public Optimizer {
 public:
  RMSprop(ParameterGroups parameters, double lr = 1e-2, RMSpropOptions options = {});

 private:
  void update(const Update& update, Updates& together) override;
  bool has_slot(size_t slot, std::span<const double> options) const override;
};

struct LionOptions {
  double beta1 = 0.9, beta2 = 0.99, weight_decay = 0;
  bool maximize = false;
};
// Steps of size lr in the direction of the sign of beta1 m + (1 - beta1) grad, and of the decoupled weight decay; then m
// becomes beta2 m + (1 - beta2) grad: Chen et al., Symbolic Discovery of Optimization Algorithms, 2023. Options: lr, beta1
// and beta2, below 1, weight_decay, maximize.
class PLUGRAD_API Lion final : public Optimizer {
 public:
  Lion(ParameterGroups parameters, double lr = 1e-4, LionOptions options = {});

 private:
  void update(const Update& update, Updates& together) override;
};

struct NAdamOptions {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0, momentum_decay = 4e-3;
  bool decoupled_weight_decay = false, maximize = false;
};
// Adam with Nesterov's momentum: Dozat, Incorporating Nesterov Momentum into Adam, 2016; the steps of torch.optim.NAdam.
// Further options: beta1 and beta2, below 1, eps, momentum_decay, decoupled_weight_decay (0 or 1).
class PLUGRAD_API NAdam final : public Optimizer {
 public:
  NAdam(ParameterGroups parameters, double lr = 2e-3, NAdamOptions options = {});

 private:
  void update(const Update& update, Updates& together) override;
  void count(const Update& update) override;
};

struct RAdamOptions {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0;
  bool decoupled_weight_decay = false, maximize = false;
};
// Adam whose first steps are not scaled while too few gradients estimate the variance: Liu et al., On the Variance of the
// Adaptive Learning Rate and Beyond, 2020; the steps of torch.optim.RAdam. Further options: beta1 and beta2, below 1, eps,
// decoupled_weight_decay (0 or 1).
class PLUGRAD_API RAdam final : public Optimizer {
 public:
  RAdam(ParameterGroups parameters, double lr = 1e-3, RAdamOptions options = {});

 private:
  void update(const Update& update, Updates& together) override;
};

struct AdamaxOptions {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0;
  bool maximize = false;
};
// Adam by the largest gradient so far: Kingma and Ba, Adam, 2015, section 7.1; the steps of torch.optim.Adamax. Further
// options: beta1 and beta2, below 1, eps.
class PLUGRAD_API Adamax final : public Optimizer {
 public:
  Adamax(ParameterGroups parameters, double lr = 2e-3, AdamaxOptions options = {});

 private:
  void update(const Update& update, Updates& together) override;
};

struct AdagradOptions {
  double lr_decay = 0, weight_decay = 0, initial_accumulator_value = 0, epsilon = 1e-10;
  bool maximize = false;
};
// Divides by the root of the sum of all squared gradients: Duchi et al., Adaptive Subgradient Methods, 2011; the steps of
// torch.optim.Adagrad. Further options: lr_decay, initial_accumulator_value, eps.
class PLUGRAD_API Adagrad final : public Optimizer {
 public:
  Adagrad(ParameterGroups parameters, double lr = 1e-2, AdagradOptions options = {});

 private:
  void update(const Update& update, Updates& together) override;
  double slot_start(size_t slot, std::span<const double> options) const override;
};

struct AdadeltaOptions {
  double rho = 0.9, epsilon = 1e-6, weight_decay = 0;
  bool maximize = false;
};
// Scales by means of squared steps and gradients: Zeiler, ADADELTA, 2012; the steps of torch.optim.Adadelta. Further
// options: rho, at most 1, eps.
class PLUGRAD_API Adadelta final : public Optimizer {
 public:
  Adadelta(ParameterGroups parameters, double lr = 1, AdadeltaOptions options = {});

 private:
  void update(const Update& update, Updates& together) override;
};

struct RpropOptions {
  double eta_minus = 0.5, eta_plus = 1.2;  // factors of a step after a change of sign, and without
  double step_size_min = 1e-6, step_size_max = 50;
  bool maximize = false;
};
// Moves each element by a step of its own against the sign of its gradient: Riedmiller and Braun, 1993, without going back;
// the steps of torch.optim.Rprop. lr: the first steps. Further options: eta_minus, below 1, eta_plus, at least 1,
// step_size_min, step_size_max; no weight_decay.
class PLUGRAD_API Rprop final : public Optimizer {
 public:
  Rprop(ParameterGroups parameters, double lr = 1e-2, RpropOptions options = {});

 private:
  void update(const Update& update, Updates& together) override;
};

struct ASGDOptions {
  double lambda = 1e-4, alpha = 0.75, t0 = 1e6, weight_decay = 0;
  bool maximize = false;
};
// Averaged stochastic gradient descent: Polyak and Juditsky, 1992; the steps of torch.optim.ASGD. From step t0 on, the
// state's "ax" is the mean of the parameter. Further options: lambd, alpha, t0.
class PLUGRAD_API ASGD final : public Optimizer {
 public:
  ASGD(ParameterGroups parameters, double lr = 1e-2, ASGDOptions options = {});

 private:
  void update(const Update& update, Updates& together) override;
  void count(const Update& update) override;
};

// Muon's scale of the rate for a matrix of A rows and B columns: sqrt(max(1, A / B)), 0.2 sqrt(max(A, B)) or sqrt(A / B).
enum class MuonScale : int { original, match_rms_adamw, spectral_unclamped };
struct MuonOptions {
  double weight_decay = 0.1, momentum = 0.95;
  bool nesterov = true;
  double a = 3.4445, b = -4.775, c = 2.0315;  // the polynomial a x + b x^3 + c x^5
  double epsilon = 1e-7;
  int steps = 5;
  MuonScale scale = MuonScale::original;
};
// Momentum whose matrix is made nearly orthogonal by Newton-Schulz steps; the weight decay is decoupled: Jordan et al.,
// Muon, 2024; the formula of torch.optim.Muon, computed in the dtype of the parameter (PyTorch: in bf16). Further options:
// momentum, nesterov (0 or 1), ns_a, ns_b, ns_c, eps, ns_steps, below 100, and scale (0, 1 or 2); no maximize. Throws Error
// (invalid) for parameters that are not matrices.
class PLUGRAD_API Muon final : public Optimizer {
 public:
  Muon(ParameterGroups parameters, double lr = 1e-3, MuonOptions options = {});

 private:
  void update(const Update& update, Updates& together) override;
  void check(std::span<const double> options, const std::vector<Tensor>& parameters) const override;
};

}  // namespace plugrad::nn
