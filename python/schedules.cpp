// Schedules of learning rates. A schedule keeps its optimiser alive.
#include <python/binding.hpp>

#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>

#include <functional>
#include <memory>
#include <utility>

namespace plugrad::python {
namespace {

// Binds a class whose constructor takes the optimiser and then Args. last_epoch: the last epoch of a resumed training.
template <class T, class... Args, class... Named>
void bind_schedule(nb::module_& m, const char* name, const char* text, const Named&... named) {
  nb::class_<T, nn::LRScheduler>(m, name, text)
      .def(
          "__init__",
          [](T* self, nn::Optimizer& optimizer, Args... args, int64_t last_epoch) {
            new (self) T(optimizer, std::move(args)...);
            if (last_epoch != -1) self->set_epoch(last_epoch + 1);
          },
          nb::keep_alive<1, 2>(), nb::arg("optimizer"), named..., nb::arg("last_epoch") = -1);
}

// A schedule that a Python program derives from LRScheduler. Its method get_lr() returns the rates of last_epoch.
class OwnSchedule final : public nn::LRScheduler {
 public:
  OwnSchedule(nb::handle self, nn::Optimizer& optimizer) : LRScheduler(optimizer), self_(self) { (void)base_lrs(); }

 private:
  bool is_formula() const override { return false; }  // get_lr may depend on anything
  double rate(double initial, int64_t, size_t) const override { return initial; }
  void apply(int64_t) override {
    const nb::list rates(self_.attr("get_lr")());
    if (rates.size() != optimizer_.groups())
      throw nb::value_error("[LRScheduler] get_lr() must return a rate for each group of parameters");
    for (size_t i = 0; i < rates.size(); ++i)
      optimizer_.set_option("lr", taken<double>(rates[i], "[LRScheduler] a rate that get_lr() returned", "a number"), i);
  }
  nb::handle self_;  // borrowed: the Python object that contains this object
};

constexpr const char* kOptimizer = "_optimizer";

void construct_own(nb::pointer_and_handle<nn::LRScheduler> self, nn::Optimizer& optimizer, int64_t last_epoch) {
  if (self.h.type().is(nb::type<nn::LRScheduler>()))
    throw nb::type_error("[LRScheduler] derive a class with a method get_lr from it, or take one of lr_scheduler");
  auto* made = new (static_cast<void*>(self.p)) OwnSchedule(self.h, optimizer);
  self.h.attr(kOptimizer) = nb::find(&optimizer);  // keeps the optimiser alive, also if get_lr raises
  nb::inst_mark_ready(self.h);                     // get_lr reads last_epoch
  made->set_epoch(last_epoch + 1);
}

nb::dict state_of(nb::handle self) {
  nb::dict state;
  state.update(nb::cast<nb::dict>(self.attr("__dict__")));
  if (state.contains(kOptimizer)) nb::del(state[kOptimizer]);
  state["last_epoch"] = nb::cast<const nn::LRScheduler&>(self).last_epoch();
  return state;
}

void load_state(nb::handle self, const nb::dict& state) {
  if (!state.contains("last_epoch")) throw nb::value_error("[LRScheduler] the state has no 'last_epoch'");
  const int64_t epoch = taken<int64_t>(state["last_epoch"], "[LRScheduler] 'last_epoch' of the state", "a whole number");
  for (const auto& [key, value] : state) {
    const std::string name = taken<std::string>(key, "[LRScheduler] a key of the state", "a name");
    if (name != "last_epoch" && name != "base_lrs") nb::setattr(self, key, value);  // base_lrs follow from the optimiser
  }
  nb::cast<nn::LRScheduler&>(self).set_epoch(epoch);
}

void bind_base(nb::module_& m) {
  nb::class_<nn::LRScheduler, OwnSchedule>(m, "LRScheduler", nb::dynamic_attr(),
                                           "Sets the rates of an optimiser's groups for each epoch, from the rates that "
                                           "they had when the first schedule was made.")
      .def(
          "__init__", construct_own, nb::arg("optimizer"), nb::arg("last_epoch") = -1,
          "Constructs an object of a class derived from LRScheduler. The class defines get_lr(), which returns the rates of "
          "all groups at last_epoch.")
      .def_prop_ro("base_lrs", &nn::LRScheduler::base_lrs,
                   "The initial rates of all groups, from which the schedule computes the rates.")
      .def_prop_ro(
          "optimizer", [](const nn::LRScheduler& self) { return nb::find(&self.optimizer()); }, "The optimiser.",
          nb::sig("def optimizer(self) -> Optimizer"))
      .def("step", &nn::LRScheduler::step, "Advances to the next epoch and sets its rates.")
      .def_prop_rw("last_epoch", &nn::LRScheduler::last_epoch, &nn::LRScheduler::set_epoch,
                   "The epoch. Setting it sets the rates of the epoch, to resume a training.")
      .def(
          "get_last_lr",
          [](const nn::LRScheduler& self) {
            note_unrepeatable("it reads the rates of a schedule, which are numbers of Python");
            return self.get_last_lr();
          },
          "Returns the rates of all groups.")
      .def("state_dict", state_of,
           "Returns the state for a checkpoint: \"last_epoch\", and the attributes that were set on the schedule.")
      .def("load_state_dict", load_state, nb::arg("state_dict"), "Restores a state of state_dict, and sets the rates.");
}

// Returns the number of steps of a cycle: total_steps, or the steps of all epochs.
int64_t steps_of_cycle(std::optional<int64_t> total_steps, std::optional<int64_t> epochs, std::optional<int64_t> each) {
  if (total_steps) return *total_steps;
  if (!epochs || !each) throw nb::value_error("[OneCycleLR] give total_steps, or both epochs and steps_per_epoch");
  int64_t steps = 0;
  if (__builtin_mul_overflow(*epochs, *each, &steps) || *epochs < 1 || *each < 1)
    throw nb::value_error("[OneCycleLR] epochs and steps_per_epoch must be at least 1, and their product below 2^63");
  return steps;
}

void construct_one_cycle(nn::OneCycleLR* self, nn::Optimizer& optimizer, double max_lr, std::optional<int64_t> total_steps,
                         std::optional<int64_t> epochs, std::optional<int64_t> steps_per_epoch, double pct_start,
                         const std::string& strategy, bool cycle_momentum, double base_momentum, double max_momentum,
                         double div_factor, double final_div_factor, bool three_phase) {
  if (strategy != "cos" && strategy != "linear") throw nb::value_error("[OneCycleLR] anneal_strategy must be cos or linear");
  new (self) nn::OneCycleLR(optimizer, max_lr, steps_of_cycle(total_steps, epochs, steps_per_epoch),
                            {.pct_start = pct_start,
                             .div_factor = div_factor,
                             .final_div_factor = final_div_factor,
                             .linear = strategy == "linear",
                             .three_phase = three_phase,
                             .cycle_momentum = cycle_momentum,
                             .base_momentum = base_momentum,
                             .max_momentum = max_momentum});
}

// A rate, or a list of a rate for each group.
std::vector<double> rates_from(const nb::object& given, const std::string& role) {
  std::vector<double> rates;
  if (nb::isinstance<nb::list>(given) || nb::isinstance<nb::tuple>(given))
    for (const nb::handle each : given) rates.push_back(taken<double>(each, "an element of " + role, "a number"));
  else rates.push_back(taken<double>(given, role, "a number or a list of numbers"));
  return rates;
}

void construct_cyclic(nn::CyclicLR* self, nn::Optimizer& optimizer, const nb::object& base_lr, const nb::object& max_lr,
                      int64_t step_size_up, std::optional<int64_t> step_size_down, const std::string& mode, double gamma,
                      bool cycle_momentum, double base_momentum, double max_momentum, int64_t last_epoch) {
  using Mode = nn::CyclicOptions::Mode;
  if (mode != "triangular" && mode != "triangular2" && mode != "exp_range")
    throw nb::value_error("[CyclicLR] mode must be triangular, triangular2 or exp_range");
  const Mode chosen = mode == "triangular" ? Mode::triangular : mode == "triangular2" ? Mode::triangular2 : Mode::exp_range;
  new (self) nn::CyclicLR(optimizer, rates_from(base_lr, "[CyclicLR] base_lr"), rates_from(max_lr, "[CyclicLR] max_lr"),
                          {step_size_up, step_size_down, chosen, gamma, cycle_momentum, base_momentum, max_momentum});
  if (last_epoch != -1) self->set_epoch(last_epoch + 1);
}

void construct_swa(nn::SWALR* self, nn::Optimizer& optimizer, const nb::object& swa_lr, int64_t anneal_epochs,
                   const std::string& strategy, int64_t last_epoch) {
  if (strategy != "cos" && strategy != "linear") throw nb::value_error("[SWALR] anneal_strategy must be cos or linear");
  new (self) nn::SWALR(optimizer, rates_from(swa_lr, "[SWALR] swa_lr"), anneal_epochs, strategy == "linear");
  if (last_epoch != -1) self->set_epoch(last_epoch + 1);
}

// All these schedules keep the optimiser alive, and SequentialLR also keeps its schedules alive.
void bind_composed(nb::module_& m) {
  nb::class_<nn::OneCycleLR, nn::LRScheduler>(m, "OneCycleLR",
                                              "Raises the rate from max_lr / div_factor to max_lr and lowers it to max_lr / "
                                              "(div_factor final_div_factor), while the "
                                              "momentum moves in the opposite direction: Smith and Topin, 2019.")
      .def("__init__", construct_one_cycle, nb::keep_alive<1, 2>(), nb::arg("optimizer"), nb::arg("max_lr"),
           nb::arg("total_steps") = nb::none(), nb::arg("epochs") = nb::none(), nb::arg("steps_per_epoch") = nb::none(),
           nb::arg("pct_start") = 0.3, nb::arg("anneal_strategy") = "cos", nb::arg("cycle_momentum") = true,
           nb::arg("base_momentum") = 0.85, nb::arg("max_momentum") = 0.95, nb::arg("div_factor") = 25.0,
           nb::arg("final_div_factor") = 1e4, nb::arg("three_phase") = false);
  nb::class_<nn::CyclicLR, nn::LRScheduler>(
      m, "CyclicLR",
      "Moves the rates between base_lr and max_lr along straight lines, numbers or lists of a number for each group; the "
      "height of a cycle stays (triangular), is halved (triangular2), or is multiplied by gamma in each step (exp_range), "
      "while the momentum moves in the opposite direction: Smith, 2017.")
      .def("__init__", construct_cyclic, nb::keep_alive<1, 2>(), nb::arg("optimizer"), nb::arg("base_lr"), nb::arg("max_lr"),
           nb::arg("step_size_up") = 2000, nb::arg("step_size_down") = nb::none(), nb::arg("mode") = "triangular",
           nb::arg("gamma") = 1.0, nb::arg("cycle_momentum") = true, nb::arg("base_momentum") = 0.8,
           nb::arg("max_momentum") = 0.9, nb::arg("last_epoch") = -1);
  nb::class_<nn::SWALR, nn::LRScheduler>(m, "SWALR",
                                         "Moves the rates to swa_lr, a number or a list of a number for each group, in "
                                         "anneal_epochs epochs from the rates at the first step().")
      .def("__init__", construct_swa, nb::keep_alive<1, 2>(), nb::arg("optimizer"), nb::arg("swa_lr"),
           nb::arg("anneal_epochs") = 10, nb::arg("anneal_strategy") = "cos", nb::arg("last_epoch") = -1);
  nb::class_<nn::SequentialLR, nn::LRScheduler>(m, "SequentialLR",
                                                "Runs schedules one after another. At each milestone the next "
                                                "schedule begins with epoch 0.")
      .def(
          "__init__",
          [](nn::SequentialLR* self, nn::Optimizer& optimizer, const nb::list& schedulers, std::vector<int64_t> milestones) {
            std::vector<std::shared_ptr<nn::LRScheduler>> all;
            for (const nb::handle each : schedulers)  // the Python object owns the schedule
              all.emplace_back(&nb::cast<nn::LRScheduler&>(each), [kept = nb::borrow(each)](nn::LRScheduler*) {});
            new (self) nn::SequentialLR(optimizer, std::move(all), std::move(milestones));
          },
          nb::keep_alive<1, 2>(), nb::arg("optimizer"), nb::arg("schedulers"), nb::arg("milestones"));
}

nb::dict plateau_state(const nn::ReduceLROnPlateau& self) {
  const nn::ReduceLROnPlateau::State state = self.state();
  nb::dict result;
  result["best"] = state.best;
  result["num_bad_epochs"] = state.num_bad_epochs;
  result["cooldown_counter"] = state.cooldown_counter;
  result["last_epoch"] = state.last_epoch;
  return result;
}

void load_plateau_state(nn::ReduceLROnPlateau& self, const nb::dict& given) {
  const auto number = [&](const char* name) {
    if (!given.contains(name))
      throw nb::value_error((std::string("[ReduceLROnPlateau] the state has no '") + name + "'").c_str());
    return given[name];
  };
  const auto whole = [&](const char* name) {
    return taken<int64_t>(number(name), std::string("[ReduceLROnPlateau] '") + name + "' of the state", "a whole number");
  };
  self.load_state({taken<double>(nb::float_(number("best")), "[ReduceLROnPlateau] 'best' of the state", "a number"),
                   whole("num_bad_epochs"), whole("cooldown_counter"), whole("last_epoch")});
}

void bind_plateau(nb::module_& m) {
  nb::class_<nn::ReduceLROnPlateau>(m, "ReduceLROnPlateau",
                                    "Multiplies the rates by factor when the metric has not improved by more than "
                                    "threshold in more than patience epochs.")
      .def(
          "__init__",
          [](nn::ReduceLROnPlateau* self, nn::Optimizer& optimizer, const std::string& mode, double factor, int64_t patience,
             double threshold, const std::string& threshold_mode, int64_t cooldown, double min_lr, double eps) {
            if ((mode != "min" && mode != "max") || (threshold_mode != "rel" && threshold_mode != "abs"))
              throw nb::value_error("[ReduceLROnPlateau] mode must be min or max, and threshold_mode rel or abs");
            new (self) nn::ReduceLROnPlateau(
                optimizer, {mode == "max", factor, patience, threshold, threshold_mode == "rel", cooldown, min_lr, eps});
          },
          nb::keep_alive<1, 2>(), nb::arg("optimizer"), nb::arg("mode") = "min", nb::arg("factor") = 0.1,
          nb::arg("patience") = 10, nb::arg("threshold") = 1e-4, nb::arg("threshold_mode") = "rel", nb::arg("cooldown") = 0,
          nb::arg("min_lr") = 0.0, nb::arg("eps") = 1e-8)
      .def("step", &nn::ReduceLROnPlateau::step, nb::arg("metrics"),
           "Takes the metric of an epoch, and lowers the rates if the metric has stopped improving.")
      .def("state_dict", plateau_state, "Returns the state for a checkpoint: a dict of numbers by name.")
      .def("load_state_dict", load_plateau_state, nb::arg("state_dict"), "Restores a state of state_dict.")
      .def(
          "get_last_lr", [](const nn::ReduceLROnPlateau& self) { return self.rates(); }, "Returns the rates of all groups.")
      .def_prop_ro("best", &nn::ReduceLROnPlateau::best, "The best metric so far.")
      .def_prop_ro(
          "num_bad_epochs", &nn::ReduceLROnPlateau::num_bad_epochs,
          "The number of epochs without improvement since the last improvement, reduction of the rates or cooldown.");
}
}  // namespace

void bind_schedules(nb::module_& m) {
  bind_base(m);
  bind_schedule<nn::LambdaLR, std::function<double(int64_t)>>(m, "LambdaLR", "Sets the initial rate times lr_lambda(epoch).",
                                                              nb::arg("lr_lambda"));
  bind_schedule<nn::StepLR, int64_t, double>(m, "StepLR", "Multiplies the rate by gamma every step_size epochs.",
                                             nb::arg("step_size"), nb::arg("gamma") = 0.1);
  bind_schedule<nn::MultiStepLR, std::vector<int64_t>, double>(m, "MultiStepLR",
                                                               "Multiplies the rate by gamma at each epoch in milestones.",
                                                               nb::arg("milestones"), nb::arg("gamma") = 0.1);
  bind_schedule<nn::ExponentialLR, double>(m, "ExponentialLR", "Multiplies the rate by gamma every epoch.",
                                           nb::arg("gamma"));
  bind_schedule<nn::LinearLR, double, double, int64_t>(
      m, "LinearLR",
      "Sets the initial rate times a factor that goes from start_factor to end_factor in total_iters epochs and "
      "then stays constant.",
      nb::arg("start_factor") = 1.0 / 3, nb::arg("end_factor") = 1.0, nb::arg("total_iters") = 5);
  bind_schedule<nn::ConstantLR, double, int64_t>(m, "ConstantLR",
                                                 "Sets the initial rate times factor before epoch total_iters.",
                                                 nb::arg("factor") = 1.0 / 3, nb::arg("total_iters") = 5);
  bind_schedule<nn::PolynomialLR, int64_t, double>(
      m, "PolynomialLR", "Sets the initial rate times (1 - epoch / total_iters)^power, and 0 from epoch total_iters on.",
      nb::arg("total_iters") = 5, nb::arg("power") = 1.0);
  bind_schedule<nn::CosineAnnealingLR, int64_t, double>(
      m, "CosineAnnealingLR", "Moves the rate from the initial rate to eta_min along half a cosine of T_max epochs.",
      nb::arg("T_max"), nb::arg("eta_min") = 0.0);
  bind_schedule<nn::CosineAnnealingWarmRestarts, int64_t, int64_t, double>(
      m, "CosineAnnealingWarmRestarts",
      "Repeats CosineAnnealingLR in cycles of T_0 epochs, then T_0 T_mult, T_0 T_mult^2 and so on.", nb::arg("T_0"),
      nb::arg("T_mult") = 1, nb::arg("eta_min") = 0.0);
  bind_composed(m);
  bind_plateau(m);
}

}  // namespace plugrad::python
