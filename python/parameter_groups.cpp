#include <python/parameter_groups.hpp>

#include <algorithm>

namespace plugrad::python {
namespace {

bool has_option(const nn::Optimizer& optimizer, const std::string& name) {
  const std::vector<std::string> names = optimizer.option_names();
  return std::ranges::find(names, name) != names.end();
}

// Returns whether Python shows the option, 0 or 1 in the core, as a bool, as PyTorch does.
bool is_switch(const std::string& name) { return name == "nesterov" || name == "centered" || name == "amsgrad"; }

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

nb::object option_of(const nn::Optimizer& optimizer, const std::string& name, size_t group) {
  if (name == "betas" && has_option(optimizer, "beta1"))
    return nb::make_tuple(optimizer.option("beta1", group), optimizer.option("beta2", group));
  const double value = optimizer.option(name, group);
  return is_switch(name) ? nb::object(nb::bool_(value != 0)) : nb::object(nb::float_(value));
}

std::vector<std::string> names_of(const nn::Optimizer& optimizer) {
  std::vector<std::string> names;
  for (const std::string& each : optimizer.option_names()) {
    if (each == "beta1") names.emplace_back("betas");
    else if (each != "beta2") names.push_back(each);
  }
  return names;
}

void bind_groups(nb::module_& m) {
  nb::class_<GroupView>(
      m, "ParameterGroup",
      "A group of an optimiser's parameters. group[\"params\"] are its tensors; group[\"lr\"] and further options "
      "can be set.\n\nRaises ValueError for an unknown option and for a value out of range.")
      .def("__getitem__", read_group, nb::arg("name"))
      .def("__setitem__", write_group, nb::arg("name"), nb::arg("value"))
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
