// Groups of an optimiser's parameters, and options by their names in Python.
#pragma once
#include <python/binding.hpp>

#include <string>
#include <vector>

namespace plugrad::python {

// One group of an optimiser, as a mapping whose values can be set.
struct GroupView {
  nb::object optimizer;  // keeps the optimiser alive
  size_t index;
  nn::Optimizer& get() const { return nb::cast<nn::Optimizer&>(optimizer); }
};

// Returns the names of an optimiser's options in Python: betas for beta1 and beta2.
std::vector<std::string> names_of(const nn::Optimizer& optimizer);
nb::object option_of(const nn::Optimizer& optimizer, const std::string& name, size_t group);

// Converts an option from Python and calls `write(name, number)`, for betas twice.
template <class Write> void write_option(const std::string& name, nb::handle value, Write write) {
  const auto number = [&](nb::handle given) { return taken<double>(nb::float_(given), "[optimizer] " + name, "a number"); };
  if (name != "betas") return write(name, number(value));
  const nb::tuple betas = nb::tuple(nb::borrow(value));
  if (betas.size() != 2) throw nb::value_error("[optimizer] betas must be two numbers");
  write("beta1", number(betas[0]));
  write("beta2", number(betas[1]));
}

void bind_groups(nb::module_& m);

}  // namespace plugrad::python
