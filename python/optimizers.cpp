// Optimisers and their groups of parameters.
#include <python/optimizers.hpp>

#include <python/own_optimizers.hpp>
#include <python/parameter_groups.hpp>

#include <nanobind/stl/optional.h>

#include <optional>
#include <set>
#include <string>
#include <tuple>

namespace plugrad::python {
namespace {

std::vector<Tensor> tensors_in(const nb::object& given) {
  if (nb::isinstance<Tensor>(given))
    throw nb::type_error("[optimizer] an iterable of tensors is expected, not a tensor: write [tensor]");
  std::vector<Tensor> all;
  for (const nb::handle each : given) {
    if (!nb::isinstance<Tensor>(each))
      throw nb::type_error(
          "[optimizer] an iterable of tensors is expected, such as model.parameters(), or of dicts with "
          "\"params\" and options");
    all.push_back(nb::cast<Tensor>(each));
  }
  if (all.empty()) throw nb::value_error("[optimizer] no parameters were given");
  return all;
}

nn::ParameterGroup group_of(const nb::dict& given) {
  if (!given.contains("params")) throw nb::value_error("[optimizer] a group has no \"params\"");
  nn::ParameterGroup group{tensors_in(given["params"]), {}};
  for (const auto& [key, value] : given) {
    const std::string name = taken<std::string>(key, "[optimizer] a key of a group", "the name of an option");
    if (name != "params")
      write_option(name, value, [&](const std::string& option, double number) { group.options[option] = number; });
  }
  return group;
}

// Reads the constructor's argument once into a list: of tensors, or of dicts whose "params" are lists or a tensor.
nb::list listed(const nb::object& parameters) {
  if (nb::isinstance<Tensor>(parameters)) (void)tensors_in(parameters);
  nb::list all(parameters);
  nb::list result;
  for (const nb::handle each : all) {
    if (!nb::isinstance<nb::dict>(each)) {
      result.append(each);
      continue;
    }
    nb::dict copy;
    copy.update(nb::cast<nb::dict>(each));
    if (copy.contains("params")) {
      const nb::object params = copy["params"];
      copy["params"] = nb::isinstance<Tensor>(params) ? params : nb::object(nb::list(params));
    }
    result.append(copy);
  }
  return result;
}

std::vector<nn::ParameterGroup> groups_of(const nb::list& parameters) {
  if (!parameters.size() || !nb::isinstance<nb::dict>(parameters[0])) return {{tensors_in(parameters), {}}};
  std::vector<nn::ParameterGroup> groups;
  for (const nb::handle each : parameters) {
    if (!nb::isinstance<nb::dict>(each)) throw nb::type_error("[optimizer] tensors and groups cannot be mixed");
    groups.push_back(group_of(nb::cast<nb::dict>(each)));
  }
  return groups;
}

void add_group(nb::handle self, const nb::dict& given) {
  if (is_own(self)) return void(call_own("add_param_group", self, given));
  nb::list one;
  one.append(given);
  const nb::dict group = nb::cast<nb::dict>(listed(one)[0]);
  nb::cast<nn::Optimizer&>(self).add_param_group(group_of(group));
  self.attr("_parameters").attr("append")(group["params"]);
}

// A state is a dict of tensors that save() takes. It holds the optimiser's tensors, the number of steps, and each option of
// each group under a name such as "param_groups.0.lr".
constexpr const char *kSteps = "steps", *kGroups = "param_groups.";

std::string option_key(size_t group, const std::string& option) { return kGroups + std::to_string(group) + "." + option; }

nb::dict state_of(nb::handle self) {
  if (is_own(self)) return nb::cast<nb::dict>(call_own("state_dict", self));
  const nn::Optimizer& optimizer = nb::cast<nn::Optimizer&>(self);
  nb::dict state;
  const auto put = [&](const std::string& name, const Tensor& tensor) { state[name.c_str()] = nb::cast(tensor); };
  for (const nn::NamedTensor& each : optimizer.state()) put(each.name, each.tensor);
  const Device host = has_device("cpu") ? Device("cpu") : default_device();  // some devices have no f64
  put(kSteps, scalar(optimizer.steps(), DType::i64, host));
  for (size_t i = 0; i < optimizer.groups(); ++i)
    for (const std::string& option : optimizer.option_names())
      put(option_key(i, option), scalar(optimizer.option(option, i), DType::f64, host));
  return state;
}

// Keeps the options of all groups, to restore them if a load fails.
class KeptOptions {
 public:
  explicit KeptOptions(nn::Optimizer& of) : of_(of) {
    for (size_t i = 0; i < of.groups(); ++i)
      for (const std::string& option : of.option_names()) kept_.push_back({option, of.option(option, i), i});
  }
  void give_back() {
    for (const auto& [option, value, group] : kept_) of_.set_option(option, value, group);
  }

 private:
  nn::Optimizer& of_;
  std::vector<std::tuple<std::string, double, size_t>> kept_;
};

// PyTorch's state has nothing of a parameter that has made no step: adds the state of such parameters at the start.
void add_missing(std::vector<nn::NamedTensor>& slots, nn::Optimizer& optimizer) {
  const auto number_of = [](const std::string& name) {
    const size_t dot = name.find('.');
    return dot == std::string::npos ? name : name.substr(dot, name.find('.', dot + 1) - dot);
  };
  std::set<std::string> given;
  for (const nn::NamedTensor& each : slots) given.insert(number_of(each.name));
  optimizer.complete_state();
  for (const nn::NamedTensor& each : optimizer.state())
    if (!given.contains(number_of(each.name))) slots.push_back({each.name, zeros_like(each.tensor)});
}

// Throws ValueError unless PyTorch's state has as many parameters in each group as the optimiser.
void require_same_groups(const nb::dict& state, const nn::Optimizer& optimizer) {
  const auto text = [](const std::vector<size_t>& counts) {
    std::string all;
    for (const size_t each : counts) all += (all.empty() ? "" : ", ") + std::to_string(each);
    return all;
  };
  std::vector<size_t> theirs, ours;
  for (const nb::handle group : nb::list(nb::object(state["param_groups"]))) {
    if (!nb::isinstance<nb::dict>(group) || !nb::cast<nb::dict>(group).contains("params")) return;  // named later
    theirs.push_back(nb::len(nb::object(nb::cast<nb::dict>(group)["params"])));
  }
  for (size_t i = 0; i < optimizer.groups(); ++i) ours.push_back(optimizer.parameters(i).size());
  if (theirs != ours)
    throw nb::value_error(("[optimizer] the state has groups of " + text(theirs) +
                           " parameters, the optimizer has groups of " + text(ours) +
                           ": give the parameters of the training that saved it")
                              .c_str());
}

// Restores a state of state_of or of PyTorch. steps: needed for a state without "steps".
void load_state(nb::handle self, const nb::dict& given, std::optional<int64_t> steps) {
  if (is_own(self)) return void(call_own("load_state_dict", self, given));
  nn::Optimizer& optimizer = nb::cast<nn::Optimizer&>(self);
  const bool is_theirs = given.contains("param_groups");
  if (is_theirs) require_same_groups(given, optimizer);
  const nb::dict state =
      is_theirs ? nb::cast<nb::dict>(nb::module_::import_("plugrad._pickling").attr("state_of_torch")(given)) : given;
  std::vector<nn::NamedTensor> slots;
  std::vector<std::tuple<std::string, double, size_t>> options;
  for (const auto& [key, value] : state) {
    const std::string name = taken<std::string>(key, "[optimizer] a key of the state", "the name of a tensor");
    const Tensor tensor = taken<Tensor>(value, "[optimizer] '" + name + "' of the state", "a Tensor");
    if (name == kSteps) steps = tensor.item<int64_t>();
    else if (!name.starts_with(kGroups)) slots.push_back({name, tensor});
  }
  if (!steps)
    throw nb::value_error("[optimizer] the state has no 'steps': give load_state_dict(state, steps=) the number of steps");
  for (size_t i = 0; i < optimizer.groups(); ++i)
    for (const std::string& option : optimizer.option_names())
      if (const std::string key = option_key(i, option); state.contains(key.c_str()))
        options.push_back({option, nb::cast<Tensor>(state[key.c_str()]).item<double>(), i});
  if (state.contains(option_key(optimizer.groups(), "lr").c_str()))
    throw nb::value_error("[optimizer] the state has more groups of parameters than this optimizer: add them first");
  KeptOptions before(optimizer);
  try {
    for (const auto& [option, value, group] : options) optimizer.set_option(option, value, group);
    if (is_theirs) add_missing(slots, optimizer);
    optimizer.load_state(slots, *steps);
  } catch (...) {
    before.give_back();
    throw;
  }
}

nb::list groups_as_dicts(nb::handle self) {
  const nn::Optimizer& optimizer = nb::cast<nn::Optimizer&>(self);
  nb::list all;
  for (size_t i = 0; i < optimizer.groups(); ++i) {
    nb::dict group;
    group["params"] = self.attr("_parameters")[i];
    for (const std::string& name : names_of(optimizer)) group[name.c_str()] = option_of(optimizer, name, i);
    all.append(group);
  }
  return all;
}

nb::object pickled(nb::handle self) {
  if (is_own(self)) return call_own("pickled", self);
  const nn::Optimizer& optimizer = nb::cast<nn::Optimizer&>(self);
  return nb::make_tuple(nb::module_::import_("plugrad._pickling").attr("optimizer"),
                        nb::make_tuple(self.type(), groups_as_dicts(self), state_of(self), optimizer.steps()));
}

nb::object group_views(nb::handle self) {
  if (is_own(self)) {
    note_unrepeatable("it reads the groups of an optimiser that is written in Python, whose numbers change unseen");
    return self.attr("_groups");
  }
  nb::list all;
  for (size_t i = 0; i < nb::cast<nn::Optimizer&>(self).groups(); ++i) all.append(nb::cast(GroupView{nb::borrow(self), i}));
  return all;
}

nb::object step_lbfgs(nn::LBFGS& optimizer, const nb::object& closure) {
  if (closure.is_none())
    throw nb::type_error("[LBFGS] step needs a closure, which computes the loss and its gradient again");
  nb::object first;
  (void)optimizer.step([&]() -> Tensor {
    const EnableGrad recorded;
    const nb::object loss = closure();
    if (!first.is_valid()) first = loss;
    Tensor tensor;
    if (nb::try_cast(loss, tensor)) return tensor;
    return scalar(taken<double>(loss, "[LBFGS] the result of the closure", "the loss, a tensor or a number"), DType::f64);
  });
  return first;
}

nb::object step(nb::handle self, const nb::object& closure) {
  if (is_own(self)) throw nb::type_error("[Optimizer] the class has no method step(closure=None): define one");
  nn::Optimizer& optimizer = nb::cast<nn::Optimizer&>(self);
  if (auto* const lbfgs = dynamic_cast<nn::LBFGS*>(&optimizer)) return step_lbfgs(*lbfgs, closure);
  const nb::object loss = closure.is_none() ? nb::none() : closure();
  unlocked([&] { optimizer.step(); });
  return loss;
}

void zero_grad(nb::handle self, bool set_to_none) {
  nn::Optimizer& optimizer = nb::cast<nn::Optimizer&>(self);
  if (set_to_none) return optimizer.zero_grad();
  for (const nb::handle group : self.attr("_parameters"))
    for (const nb::handle each : group) {
      const Tensor grad = nb::cast<Tensor>(each).grad();
      if (grad.defined()) nb::cast<Tensor>(each).set_grad(zeros_like(grad));
    }
}

void bind_base(nb::module_& m) {
  nb::class_<nn::Optimizer, OwnOptimizer>(
      m, "Optimizer", nb::dynamic_attr(),
      "Updates parameters in place. params: tensors, or groups: dicts with \"params\" and options of the group. A step does "
      "not change a parameter that has no gradient or is frozen by requires_grad_(False).\n\nRaises ValueError for tensors "
      "that are not leaves or require no gradient, and for rates and further options that are negative or not finite.")
      .def("__init__", construct_own, nb::arg("params"), nb::arg("defaults"),
           "Constructs an object of a class derived from Optimizer. The class defines step(), which iterates over "
           "param_groups (dicts) and keeps its state in state[parameter]. defaults: the options of a group that omits "
           "them.")
      .def("_register",
           [](nn::Optimizer& self, const nb::list& tensors) { self.add_param_group({tensors_in(tensors), {}}); })
      .def(
          "step", step, nb::arg("closure") = nb::none(),
          "Makes one step with the current gradients. closure: a function that computes the gradients and returns the loss; "
          "step calls closure first and returns the loss.")
      .def("zero_grad", zero_grad, nb::arg("set_to_none") = true,
           "Drops the gradients of all parameters; without set_to_none, fills the gradients with 0.")
      .def_prop_rw("lr", &nn::Optimizer::rate, &nn::Optimizer::set_rate,
                   "The learning rate of the first group. Setting it sets the rate of all groups.")
      .def_prop_ro("param_groups", group_views, "The groups; a single group if the parameters were given without groups.",
                   nb::sig("def param_groups(self) -> list[Any]"))
      .def("add_param_group", add_group, nb::arg("param_group"), "Adds a group: a dict with \"params\" and options.")
      .def_prop_ro("steps", &nn::Optimizer::steps,
                   "The number of steps so far; 0 for a class derived in Python, which counts its own steps.")
      .def("state_dict", state_of,
           "Returns the state for a checkpoint, without the parameters. For a class derived in Python: {\"state\": ..., "
           "\"param_groups\": ...}, as in PyTorch. Else a dict of tensors by name, which save() takes: the tensors of the "
           "optimiser, \"steps\", and the options of each group, such as \"param_groups.0.lr\".")
      .def("load_state_dict", load_state, nb::arg("state"), nb::arg("steps") = nb::none(),
           "Restores a state of state_dict with its options, or a state of PyTorch's optimiser of this name. steps: the "
           "number of steps for a state without \"steps\". Raises ValueError, which names a tensor that is missing or has "
           "another shape; the optimiser then does not change.")
      .def("__reduce__", pickled);
}

}  // namespace

nb::list construct_optimizer(const nb::object& parameters, const std::function<void(nn::ParameterGroups)>& make) {
  const nb::list all = listed(parameters);
  make(groups_of(all));
  nb::list kept;
  if (nb::isinstance<nb::dict>(all[0]))
    for (const nb::handle each : all) kept.append(nb::cast<nb::dict>(each)["params"]);
  else kept.append(all);
  return kept;
}

void bind_optimizers(nb::module_& m) {
  bind_groups(m);
  bind_base(m);
  bind_kinds(m);
}

}  // namespace plugrad::python
