#include <python/parameter_groups.hpp>

#include <algorithm>
#include <iterator>

namespace plugrad::python {
namespace {

// Options of the core that Python shows as a tuple.
struct TupleOption {
  const char* name;
  std::vector<std::string> parts;
};
const std::vector<TupleOption>& tuples() {
  static const std::vector<TupleOption> all{{"betas", {"beta1", "beta2"}},
                                            {"etas", {"eta_minus", "eta_plus"}},
                                            {"step_sizes", {"step_size_min", "step_size_max"}},
                                            {"ns_coefficients", {"ns_a", "ns_b", "ns_c"}}};
  return all;
}

const TupleOption* tuple_named(const std::string& name) {
  const auto found = std::ranges::find(tuples(), name, &TupleOption::name);
  return found == tuples().end() ? nullptr : &*found;
}

const TupleOption* tuple_with(const std::string& part) {
  const auto has_part = [&](const TupleOption& each) { return std::ranges::find(each.parts, part) != each.parts.end(); };
  const auto found = std::ranges::find_if(tuples(), has_part);
  return found == tuples().end() ? nullptr : &*found;
}

// Returns whether Python shows the option, 0 or 1 in the core, as a bool, as PyTorch does.
bool is_switch(const std::string& name) {
  for (const char* each : {"nesterov", "centered", "amsgrad", "maximize", "decoupled_weight_decay"})
    if (name == each) return true;
  return false;
}

// Options of the core that Python shows as a name, or as None.
struct NamedOption {
  const char *name, *in_core;
  std::vector<const char*> values;  // nullptr: None
  const char* none;                 // the value that None selects
};
const std::vector<NamedOption>& named_options() {
  static const std::vector<NamedOption> all{
      {"adjust_lr_fn", "scale", {"original", "match_rms_adamw", "spectral_unclamped"}, "original"},
      {"line_search_fn", "strong_wolfe", {nullptr, "strong_wolfe"}, nullptr}};
  return all;
}

const NamedOption* named_option(const std::string& name) {
  const auto is_it = [&](const NamedOption& each) { return name == each.name || name == each.in_core; };
  const auto found = std::ranges::find_if(named_options(), is_it);
  return found == named_options().end() ? nullptr : &*found;
}

double number_of(const NamedOption& option, nb::handle value) {
  const std::string role = std::string("[optimizer] ") + option.name;
  std::string expected;
  for (size_t i = 0; i < option.values.size(); ++i) {
    const char* const each = option.values[i];
    if (value.is_none() ? each == option.none : each && taken<std::string>(value, role, "a name or None") == each)
      return static_cast<double>(i);
    if (each) expected += (expected.empty() ? "'" : ", '") + std::string(each) + "'";
  }
  throw nb::value_error((role + " '" + nb::cast<std::string>(value) + "' is unknown: expected None or " + expected).c_str());
}

// Options that are whole numbers.
bool is_whole(const std::string& name) {
  for (const char* each : {"ns_steps", "max_iter", "max_eval", "history_size"})
    if (name == each) return true;
  return false;
}

nb::object read_group(const GroupView& group, const std::string& name) {
  if (name != "params") note_unrepeatable("it reads an option of an optimiser, which is a number of Python");
  if (name == "params") return nb::object(group.optimizer.attr("_parameters")[group.index]);
  return option_of(group.get(), name, group.index);
}

void write_group(const GroupView& group, const std::string& name, const nb::object& value) {
  if (name == "params")
    throw nb::value_error("[optimizer] the parameters of a group cannot be replaced: make a new optimizer");
  write_option(name, value,
               [&](const std::string& option, double number) { group.get().set_option(option, number, group.index); });
}

nb::list keys_of(const GroupView& group) {
  nb::list keys;
  keys.append("params");
  for (const std::string& name : names_of(group.get())) keys.append(name);
  return keys;
}

nb::list values_of(const GroupView& group) {
  nb::list values;
  for (const nb::handle name : keys_of(group)) values.append(read_group(group, nb::cast<std::string>(name)));
  return values;
}

nb::object items_of(const GroupView& group) {
  return nb::module_::import_("builtins").attr("zip")(keys_of(group), values_of(group));
}

void update_group(const GroupView& group, const nb::dict& options) {
  for (const auto& [name, value] : options)
    write_group(group, taken<std::string>(name, "[optimizer] a key of the options", "a name"), nb::borrow(value));
}

}  // namespace

void write_option(const std::string& name, nb::handle value,
                  const std::function<void(const std::string& option, double number)>& write) {
  const auto number = [&](nb::handle given) { return taken<double>(nb::float_(given), "[optimizer] " + name, "a number"); };
  if (const NamedOption* const named = named_option(name)) return write(named->in_core, number_of(*named, value));
  const TupleOption* const tuple = tuple_named(name);
  if (!tuple) return write(name, number(value));
  const nb::tuple numbers = nb::tuple(nb::borrow(value));
  if (numbers.size() != tuple->parts.size())
    throw nb::value_error(
        ("[optimizer] " + name + " must be " + (tuple->parts.size() == 2 ? "two" : "three") + " numbers").c_str());
  for (size_t i = 0; i < tuple->parts.size(); ++i) write(tuple->parts[i], number(numbers[i]));
}

nb::object option_of(const nn::Optimizer& optimizer, const std::string& name, size_t group) {
  if (const TupleOption* const tuple = tuple_named(name)) {
    nb::list numbers;
    for (const std::string& part : tuple->parts) numbers.append(optimizer.option(part, group));
    return nb::tuple(numbers);
  }
  if (const NamedOption* const named = named_option(name)) {
    const char* const text = named->values[static_cast<size_t>(optimizer.option(named->in_core, group))];
    return text ? nb::object(nb::str(text)) : nb::none();
  }
  const double value = optimizer.option(name, group);
  if (is_whole(name)) return nb::int_(static_cast<int64_t>(value));
  return is_switch(name) ? nb::object(nb::bool_(value != 0)) : nb::object(nb::float_(value));
}

std::vector<std::string> names_of(const nn::Optimizer& optimizer) {
  std::vector<std::string> names;
  for (const std::string& each : optimizer.option_names()) {
    const TupleOption* const tuple = tuple_with(each);
    if (const NamedOption* const named = named_option(each)) names.emplace_back(named->name);
    else if (!tuple) names.push_back(each);
    else if (tuple->parts[0] == each) names.emplace_back(tuple->name);
  }
  return names;
}

void bind_groups(nb::module_& m) {
  m.def(
      "_numbers_of_option",
      [](const std::string& name, const nb::object& value) {
        nb::dict numbers;
        write_option(name, value, [&](const std::string& option, double number) { numbers[option.c_str()] = number; });
        return numbers;
      },
      nb::arg("name"), nb::arg("value").none(),
      nb::sig("def _numbers_of_option(name: str, value: Any) -> dict[str, float]"));
  nb::class_<GroupView>(
      m, "ParameterGroup",
      "A group of an optimiser's parameters. group[\"params\"] are its tensors; group[\"lr\"] and further options "
      "can be set.\n\nRaises ValueError for an unknown option and for a value out of range.")
      .def("__getitem__", read_group, nb::arg("name"))
      .def("__setitem__", write_group, nb::arg("name"), nb::arg("value").none())
      .def("keys", keys_of, "Returns \"params\" and the names of the options.")
      .def("values", values_of, "Returns the tensors and the values of the options.")
      .def("items", items_of, "Returns pairs of keys and values.")
      .def("update", update_group, nb::arg("options"), "Sets several options.")
      .def(
          "get",
          [](const GroupView& group, const std::string& name, const nb::object& otherwise) {
            return nb::cast<bool>(keys_of(group).attr("__contains__")(name)) ? read_group(group, name) : otherwise;
          },
          nb::arg("name"), nb::arg("default") = nb::none(),
          "Returns the value of an option, or `default` if the group does not have the option.")
      .def("__contains__", [](const GroupView& group,
                              const std::string& name) { return nb::cast<bool>(keys_of(group).attr("__contains__")(name)); })
      .def(
          "__iter__", [](const GroupView& group) { return nb::iter(keys_of(group)); },
          nb::sig("def __iter__(self) -> Iterator[str]"))
      .def("__len__", [](const GroupView& group) { return keys_of(group).size(); });
}

}  // namespace plugrad::python
