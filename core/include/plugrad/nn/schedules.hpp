// Schedules of learning rates, by PyTorch's names and formulas. A schedule sets the rates of all groups when it is made, for
// epoch 0, and then at each step() for the next epoch. It counts from each group's rate when the group's first schedule was
// made. The optimiser must outlive it. Constructors throw Error (invalid) for senseless numbers; the message names them.
#pragma once
#include <plugrad/nn/optimizer.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace plugrad::nn {

class PLUGRAD_API LRScheduler {
 public:
  virtual ~LRScheduler();
  LRScheduler(const LRScheduler&) = delete;
  LRScheduler& operator=(const LRScheduler&) = delete;
  // Sets the rates for the next epoch. In a compiled step, each replay does so too.
  void step();
  int64_t last_epoch() const { return epoch_; }
  // Sets the rates for an epoch; for a resumed training. Throws Error (invalid) for a negative epoch.
  void set_epoch(int64_t epoch);
  std::vector<double> get_last_lr() const;
  std::vector<double> base_lrs() const;  // the initial rates of all groups
  Optimizer& optimizer() const { return optimizer_; }

 protected:
  explicit LRScheduler(Optimizer& optimizer) : optimizer_(optimizer) {}
  friend class SequentialLR;
  // The rate of a group at an epoch, from its initial rate.
  virtual double rate(double initial, int64_t epoch, size_t group) const = 0;
  virtual void apply(int64_t epoch);
  // Whether the rates depend on nothing but the epoch and the initial rates: else compiled steps refuse step().
  virtual bool is_formula() const { return true; }
  Optimizer& optimizer_;

 private:
  int64_t epoch_ = 0;
  bool is_captured_ = false;  // by a compiled step, which must record anew once this schedule ends
};

// The initial rate times factor(epoch).
class PLUGRAD_API LambdaLR final : public LRScheduler {
 public:
  LambdaLR(Optimizer& optimizer, std::function<double(int64_t epoch)> factor);

 private:
  double rate(double initial, int64_t epoch, size_t group) const override;
  std::function<double(int64_t)> factor_;
};
// Times gamma every step_size epochs.
class PLUGRAD_API StepLR final : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, int64_t step_size, double gamma = 0.1);

 private:
  double rate(double initial, int64_t epoch, size_t group) const override;
  int64_t step_size_;
  double gamma_;
};
// Times gamma at each of these epochs.
class PLUGRAD_API MultiStepLR final : public LRScheduler {
 public:
  MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma = 0.1);

 private:
  double rate(double initial, int64_t epoch, size_t group) const override;
  std::vector<int64_t> milestones_;
  double gamma_;
};
// Times gamma every epoch.
class PLUGRAD_API ExponentialLR final : public LRScheduler {
 public:
  ExponentialLR(Optimizer& optimizer, double gamma);

 private:
  double rate(double initial, int64_t epoch, size_t group) const override;
  double gamma_;
};
// Times a factor from start_factor to end_factor, reached after total_iters epochs and then constant.
class PLUGRAD_API LinearLR final : public LRScheduler {
 public:
  LinearLR(Optimizer& optimizer, double start_factor = 1.0 / 3, double end_factor = 1, int64_t total_iters = 5);

 private:
  double rate(double initial, int64_t epoch, size_t group) const override;
  double start_factor_, end_factor_;
  int64_t total_iters_;
};
// Times factor before epoch total_iters.
class PLUGRAD_API ConstantLR final : public LRScheduler {
 public:
  ConstantLR(Optimizer& optimizer, double factor = 1.0 / 3, int64_t total_iters = 5);

 private:
  double rate(double initial, int64_t epoch, size_t group) const override;
  double factor_;
  int64_t total_iters_;
};
// Times (1 - epoch / total_iters)^power, and 0 from epoch total_iters on.
class PLUGRAD_API PolynomialLR final : public LRScheduler {
 public:
  PolynomialLR(Optimizer& optimizer, int64_t total_iters = 5, double power = 1);

 private:
  double rate(double initial, int64_t epoch, size_t group) const override;
  int64_t total_iters_;
  double power_;
};
// From the initial rate to eta_min along half a cosine of T_max epochs: Loshchilov and Hutter, SGDR, 2017.
class PLUGRAD_API CosineAnnealingLR final : public LRScheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, int64_t T_max, double eta_min = 0);

 private:
  double rate(double initial, int64_t epoch, size_t group) const override;
  int64_t t_max_;
  double eta_min_;
};
// As CosineAnnealingLR, but starts again after T_0 epochs, then after T_0 T_mult, T_0 T_mult^2 and so on.
class PLUGRAD_API CosineAnnealingWarmRestarts final : public LRScheduler {
 public:
  CosineAnnealingWarmRestarts(Optimizer& optimizer, int64_t T_0, int64_t T_mult = 1, double eta_min = 0);

 private:
  double rate(double initial, int64_t epoch, size_t group) const override;
  int64_t t_0_, t_mult_;
  double eta_min_;
};

struct OneCycleOptions {
  double pct_start = 0.3, div_factor = 25, final_div_factor = 1e4;
  bool linear = false;  // straight lines instead of cosines
  bool three_phase = false, cycle_momentum = true;
  double base_momentum = 0.85, max_momentum = 0.95;
};
// From max_lr / div_factor up to max_lr in pct_start of the steps, and down to max_lr / (div_factor final_div_factor):
// Smith and Topin, 2019. The momentum ("momentum", or "beta1" of Adam) moves in the opposite direction.
class PLUGRAD_API OneCycleLR final : public LRScheduler {
 public:
  OneCycleLR(Optimizer& optimizer, double max_lr, int64_t total_steps, const OneCycleOptions& options = {});

 private:
  double rate(double initial, int64_t epoch, size_t group) const override;
  void apply(int64_t epoch) override;
  double between(int64_t epoch, double low, double high, double last) const;
  double max_lr_;
  int64_t total_steps_;
  OneCycleOptions options_;
  std::string momentum_;  // the option's name
};

struct CyclicOptions {
  int64_t step_size_up = 2000;                           // steps from base_lr to max_lr
  std::optional<int64_t> step_size_down = std::nullopt;  // and back; by default the same
  enum class Mode { triangular, triangular2, exp_range } mode = Mode::triangular;
  double gamma = 1;
  bool cycle_momentum = true;
  double base_momentum = 0.8, max_momentum = 0.9;
};
// Between base_lr and max_lr along straight lines; the height of a cycle stays, is halved from cycle to cycle, or is
// multiplied by gamma in each step: Smith, Cyclical Learning Rates for Training Neural Networks, 2017. The momentum
// ("momentum", or "beta1" of Adam) moves in the opposite direction.
class PLUGRAD_API CyclicLR final : public LRScheduler {
 public:
  // base_lrs, max_lrs: a rate for all groups, or one for each.
  CyclicLR(Optimizer& optimizer, std::vector<double> base_lrs, std::vector<double> max_lrs,
           const CyclicOptions& options = {});

 private:
  double rate(double initial, int64_t epoch, size_t group) const override;
  void apply(int64_t epoch) override;
  double height(int64_t epoch) const;
  std::vector<double> base_lrs_, max_lrs_;
  CyclicOptions options_;
  std::string momentum_;  // the option's name
};

// From each group's rate at the first step() to its swa_lr, in anneal_epochs epochs along half a cosine or a line; then
// swa_lr. For weights that nn::WeightAverage averages. Other schedules may change the rates before its first step.
class PLUGRAD_API SWALR final : public LRScheduler {
 public:
  // swa_lrs: a rate for all groups, or one for each.
  SWALR(Optimizer& optimizer, std::vector<double> swa_lrs, int64_t anneal_epochs = 10, bool linear = false);

 private:
  bool is_formula() const override { return false; }
  double rate(double initial, int64_t epoch, size_t group) const override;
  void apply(int64_t epoch) override;
  double share(int64_t epoch) const;
  std::vector<double> swa_lrs_;
  int64_t anneal_epochs_, applied_ = 0;
  bool linear_;
};

// Schedules in succession: at each milestone the next schedule begins, with its epoch 0.
class PLUGRAD_API SequentialLR final : public LRScheduler {
 public:
  SequentialLR(Optimizer& optimizer, std::vector<std::shared_ptr<LRScheduler>> schedulers, std::vector<int64_t> milestones);

 private:
  double rate(double initial, int64_t epoch, size_t group) const override;
  void apply(int64_t epoch) override;
  std::pair<size_t, int64_t> place(int64_t epoch) const;
  std::vector<std::shared_ptr<LRScheduler>> schedulers_;
  std::vector<int64_t> milestones_;
};

struct PlateauOptions {
  bool max = false;  // whether larger metrics are better
  double factor = 0.1;
  int64_t patience = 10;
  double threshold = 1e-4;
  bool relative = true;  // threshold is a fraction of the best metric
  int64_t cooldown = 0;
  double min_lr = 0, eps = 1e-8;
};
// Multiplies the rates by factor when the metric did not get better, by more than threshold, in more than patience epochs.
class PLUGRAD_API ReduceLROnPlateau {
 public:
  explicit ReduceLROnPlateau(Optimizer& optimizer, const PlateauOptions& options = {});
  void step(double metric);
  double best() const { return best_; }
  int64_t num_bad_epochs() const { return bad_; }
  // The state for a resumed training.
  struct State {
    double best = 0;
    int64_t num_bad_epochs = 0, cooldown_counter = 0, last_epoch = 0;
  };
  State state() const { return {best_, bad_, cooling_, epoch_}; }
  void load_state(const State& state);
  std::vector<double> rates() const;  // of all groups

 private:
  bool better(double metric) const;
  void reduce();
  Optimizer& optimizer_;
  PlateauOptions options_;
  double best_;
  int64_t bad_ = 0, cooling_ = 0, epoch_ = 0;
};

}  // namespace plugrad::nn
