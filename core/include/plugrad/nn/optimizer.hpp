// What all optimisers share; see optimizers.hpp. They skip parameters without a gradient, or frozen by
// requires_grad_(false).
#pragma once
#include <plugrad/nn/module.hpp>
#include <plugrad/tensor/tensor.hpp>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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
// What an optimiser updates: tensors, which form a single group, or groups.
struct ParameterGroups {
  ParameterGroups(std::vector<Tensor> tensors) : groups{{std::move(tensors)}} {}
  ParameterGroups(std::initializer_list<Tensor> tensors) : groups{{tensors}} {}
  ParameterGroups(std::vector<ParameterGroup> given) : groups(std::move(given)) {}
  ParameterGroups(std::initializer_list<ParameterGroup> given) : groups(given) {}
  std::vector<ParameterGroup> groups;
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
  // Makes the tensors of the state that the options demand; else the next step does.
  void complete_state();
  int64_t steps() const { return steps_; }

 protected:
  // An option by its name and default. Its values are in [from, below), and whole if is_whole.
  struct Option {
    const char* name;
    double value;
    double below = std::numeric_limits<double>::infinity();
    double from = 0;
    bool is_whole = false;
  };
  static Option flag(const char* name, bool value) { return {name, value ? 1.0 : 0.0, 2, 0, true}; }  // 0 or 1
  // Tensors of an optimiser, a tensor per parameter, named "NAME.0". They are made when a step needs them, or at once.
  struct Slot {
    const char* name;
    std::vector<Tensor> tensors = {};
  };
  // Numbers of an optimiser, a number per parameter, named "NAME.0" in the state. The first one counts the steps of the
  // parameter: a step without a gradient does not count. A number without a name is not part of the state.
  struct Number {
    const char* name;
    std::vector<double> values = {};
  };
  // One parameter in a step. `at` counts the parameters of all groups.
  struct Update {
    Tensor& parameter;
    const Tensor& grad;
    std::span<const double> options;
    size_t at;
  };
  Optimizer(const char* name, std::vector<Option> options, std::vector<Slot> slots, std::vector<Number> numbers = {});
  // Adds the groups from a derived class's constructor. Throws Error (invalid) unless the tensors are leaves with
  // requires_grad, and for options out of range.
  void add_groups(ParameterGroups groups);
  // `together` takes the steps of all parameters, if the optimiser has fused steps. If the group's option "maximize" is not
  // 0, update.grad is the negated gradient.
  virtual void update(const Update& update, Updates& together) = 0;
  // Computes the numbers of a parameter before its step: adds 1 to the first one.
  virtual void count(const Update& update);
  // Whether the ops of a step depend on the number of steps. By default, whether the optimiser has numbers.
  virtual bool is_counted() const { return !numbers_.empty(); }
  void for_each_update(const std::function<void(const Update&)>& f);
  // Whether a slot has tensors from the start, given the group's options.
  virtual bool has_slot(size_t slot, std::span<const double> options) const;
  // The number with which a new tensor of a slot is filled.
  virtual double slot_start(size_t, std::span<const double>) const { return 0; }
  // Called at the end of load_state.
  virtual void loaded() {}
  // Checks the options of a group together, and its parameters.
  virtual void check(std::span<const double> options, const std::vector<Tensor>& parameters) const;
  // The slot's tensor for the parameter of an update, on its device.
  Tensor& slot(size_t slot, const Update& update);
  double& number(size_t number, const Update& update) { return numbers_[number].values[update.at]; }
  // Returns the gradient plus weight_decay times the parameter; the gradient itself if weight_decay is 0.
  static Tensor decayed(const Update& update, double weight_decay);
  const char* name_;
  std::vector<Slot> slots_;
  std::vector<Number> numbers_;

 private:
  struct Group {
    std::vector<Tensor> parameters;
    std::vector<double> options;
    std::optional<double> initial_rate = std::nullopt;
  };
  // The numbers of steps, and the values of all numbers.
  struct Counts {
    int64_t steps = 0;
    std::vector<std::vector<double>> values = {};
  };
  // A step: its counting, and its ops. A compiled step repeats them apart.
  void prepare_slots();
  uint64_t advance();  // returns another value if the numbers of updates differ
  void apply();
  void keep_counts(Counts& kept) const;
  void restore(const Counts& kept);
  size_t index_of(std::string_view name) const;
  void require_option(size_t option, double value) const;
  std::vector<NamedTensor> numbers_as_tensors() const;
  std::vector<std::vector<double>> numbers_in(const std::vector<NamedTensor>& state) const;
  std::vector<Option> options_;
  std::vector<Group> groups_;
  size_t maximize_;  // the option "maximize", or the number of options

 protected:
  std::vector<Tensor> all_parameters() const;
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

}  // namespace plugrad::nn
