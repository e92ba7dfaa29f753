// Optimisers. They skip parameters without a gradient, or frozen by requires_grad_(false).
#pragma once
#include <plugrad/nn/module.hpp>
#include <plugrad/tensor/tensor.hpp>

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plugrad {
class Updates;
}

namespace plugrad::nn {

// Parameters with options of their own, by name: {"lr", 1e-4}, {"weight_decay", 0}. The optimiser's own options serve for
// missing names.
struct ParameterGroup {
  std::vector<Tensor> parameters;
  std::map<std::string, double> options = {};
};

// Not thread-safe.
class PLUGRAD_API Optimizer {
 public:
  virtual ~Optimizer();
  // Makes one step with the current gradients. Records no graph.
  virtual void step();
  void zero_grad();  // releases the gradients of all parameters

  // The number of groups; one, if the parameters were given without groups.
  size_t groups() const { return groups_.size(); }
  const std::vector<Tensor>& parameters(size_t group) const { return groups_.at(group).parameters; }
  // Adds parameters. The optimiser's first options serve unless the group has its own options.
  void add_param_group(ParameterGroup group);
  // An option of a group, such as "lr". Throws Error (invalid) for an unknown name and for a value out of range; the message
  // names the expected names or range.
  virtual double option(std::string_view name, size_t group = 0) const;
  virtual void set_option(std::string_view name, double value, size_t group = 0);
  virtual std::vector<std::string> option_names() const;
  // The learning rate of the first group; set_rate sets the rates of all groups.
  double rate() const { return option("lr"); }
  void set_rate(double rate);
  // The learning rate of a group when a schedule first asked for it: schedules count from there.
  double initial_rate(size_t group);

  // The tensors for a checkpoint besides the parameters and steps(), by name ("exp_avg.0"). The numbers count the parameters
  // of all groups.
  virtual std::vector<NamedTensor> state() const;
  // Restores the tensors and steps(). If a tensor is missing or has another shape, throws Error (invalid) with its name and
  // changes nothing.
  virtual void load_state(const std::vector<NamedTensor>& state, int64_t steps);
  int64_t steps() const { return steps_; }

 protected:
  // An option by its name and default. Its values are in [0, below).
  struct Option {
    const char* name;
    double value;
    double below = std::numeric_limits<double>::infinity();
  };
  // Tensors of an optimiser, a tensor per parameter, named "NAME.0". They are made when a step needs them, or at once.
  struct Slot {
    const char* name;
    std::vector<Tensor> tensors = {};
  };
  // One parameter in a step. `at` counts the parameters of all groups.
  struct Update {
    Tensor& parameter;
    const Tensor& grad;
    std::span<const double> options;
    size_t at;
  };
  Optimizer(const char* name, std::vector<Option> options, std::vector<Slot> slots);
  // Adds the groups from a derived class's constructor. Throws Error (invalid) unless the tensors are leaves with
  // requires_grad, and for options out of range.
  void add_groups(std::vector<ParameterGroup> groups);
  // `together` takes the steps of all parameters, if the optimiser has fused steps.
  virtual void update(const Update& update, Updates& together) = 0;
  // Adds `by` to the steps of each parameter; returns whether the numbers of updates depend on them.
  virtual bool count(int by);
  void for_each_update(const std::function<void(const Update&)>& f);
  // Whether a slot has tensors from the start, given the group's options.
  virtual bool has_slot(size_t slot, std::span<const double> options) const;
  // Called for each added parameter and after load_state.
  virtual void resized() {}
  // Checks the options of a group together.
  virtual void check(std::span<const double> options) const;
  // The slot's tensor for the parameter of an update, on its device.
  Tensor& slot(size_t slot, const Update& update);
  const char* name_;
  std::vector<Slot> slots_;

 private:
  struct Group {
    std::vector<Tensor> parameters;
    std::vector<double> options;
    std::optional<double> initial_rate = std::nullopt;
  };
  // A step: its counting, and its ops. A compiled step repeats them apart.
  void prepare_slots();
  uint64_t advance();  // returns another value if the numbers of updates differ
  void apply();
  void take_back();
  size_t index_of(std::string_view name) const;
  void require_option(size_t option, double value) const;
  std::vector<Option> options_;
  std::vector<Group> groups_;

 protected:
  std::vector<Tensor> all_parameters() const;
  // Throws Error (invalid) for a number of steps beyond any training: counting on would overflow.
  static void require_steps(const std::string& what, int64_t steps);
  int64_t steps_ = 0;

 private:
  // Whether a compiled step may refer to this object, and so must record anew once it ends or becomes another optimiser.
  struct PLUGRAD_API Captured {
    Captured() = default;
    Captured(const Captured&) {}
    Captured& operator=(const Captured&);
    ~Captured();
    bool is = false;
  };
  uint64_t changes_ = 0;   // of options and state
  uint64_t prepared_ = 0;  // the value of changes_ at the last prepare_slots()
  Captured captured_;
};

struct SGDOptions {
  double momentum = 0, weight_decay = 0;
  bool nesterov = false;
};
// Computes the same steps as torch.optim.SGD with dampening 0. Options: lr, momentum, weight_decay, nesterov (0 or 1).
// Throws Error (invalid) for nesterov without momentum.
class PLUGRAD_API SGD final : public Optimizer {
 public:
  SGD(std::vector<Tensor> parameters, double lr = 1e-3, SGDOptions options = {});
  SGD(std::vector<ParameterGroup> groups, double lr = 1e-3, SGDOptions options = {});

 private:
  void update(const Update& update, Updates& together) override;
  bool has_slot(size_t slot, std::span<const double> options) const override;
  void check(std::span<const double> options) const override;
};

struct AdamOptions {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0;
  bool amsgrad = false;
};
// Computes the same steps as torch.optim.Adam, and counts them for each parameter. Options: lr, beta1 and beta2, below 1,
// eps, weight_decay, amsgrad (0 or 1): divides by the largest mean of squares so far (Reddi et al., 2018), without the fused
// step. AdamW decouples the weight decay.
class PLUGRAD_API Adam : public Optimizer {
 public:
  Adam(std::vector<Tensor> parameters, double lr = 1e-3, AdamOptions options = {});
  Adam(std::vector<ParameterGroup> groups, double lr = 1e-3, AdamOptions options = {});
  std::vector<NamedTensor> state() const override;
  void load_state(const std::vector<NamedTensor>& state, int64_t steps) override;

 protected:
  Adam(const char* name, std::vector<ParameterGroup> groups, double lr, AdamOptions options, bool decoupled);

 private:
  void update(const Update& update, Updates& together) override;
  void update_by_largest(const Update& update);
  bool has_slot(size_t slot, std::span<const double> options) const override;
  bool count(int by) override;
  void resized() override;
  std::vector<Tensor> steps_taken() const;
  bool decoupled_;
  std::vector<int64_t> taken_;  // steps of each parameter: without a gradient it takes no step
};
class PLUGRAD_API AdamW final : public Adam {
 public:
  AdamW(std::vector<Tensor> parameters, double lr = 1e-3, AdamOptions options = {.weight_decay = 0.01});
  AdamW(std::vector<ParameterGroup> groups, double lr = 1e-3, AdamOptions options = {.weight_decay = 0.01});
};

struct RMSpropOptions {
  double alpha = 0.99, epsilon = 1e-8, weight_decay = 0, momentum = 0;
  bool centered = false;
};
// Computes the same steps as torch.optim.RMSprop. Options: lr, alpha, below 1, eps, weight_decay, momentum, centered (0 or
// 1).
class PLUGRAD_API RMSprop final : public Optimizer {
 public:
  RMSprop(std::vector<Tensor> parameters, double lr = 1e-2, RMSpropOptions options = {});
  RMSprop(std::vector<ParameterGroup> groups, double lr = 1e-2, RMSpropOptions options = {});

 private:
  void update(const Update& update, Updates& together) override;
  bool has_slot(size_t slot, std::span<const double> options) const override;
};

struct LionOptions {
  double beta1 = 0.9, beta2 = 0.99, weight_decay = 0;
};
// Steps of size lr in the direction of the sign of beta1 m + (1 - beta1) grad, and of the decoupled weight decay; then m
// becomes beta2 m + (1 - beta2) grad: Chen et al., Symbolic Discovery of Optimization Algorithms, 2023. Options: lr, beta1
// and beta2, below 1, weight_decay.
class PLUGRAD_API Lion final : public Optimizer {
 public:
  Lion(std::vector<Tensor> parameters, double lr = 1e-4, LionOptions options = {});
  Lion(std::vector<ParameterGroup> groups, double lr = 1e-4, LionOptions options = {});

 private:
  void update(const Update& update, Updates& together) override;
};

}  // namespace plugrad::nn
