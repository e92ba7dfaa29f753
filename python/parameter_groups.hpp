// Groups of an optimiser's parameters, and options by the names that Python has for them.
#pragma once
#include <python/binding.hpp>

#include <string>
#include <vector>

namespace plugrad::python {

// One group of an optimiser, as a mapping that can be written.
struct GroupView {
  nb::object optimizer;  // keeps it alive
  size_t index;
  nn::Optimizer& get() const { return nb::cast<nn::Optimizer&>(optimizer); }
};

// The options of an optimiser: betas for beta1 and beta2.
std::vector<std::string> names_of(const nn::Optimizer& optimizer);
nb::object option_of(const nn::Optimizer& optimizer, const std::string& name, size_t group);

// Writes an option as Python gives it to `write(name, number)`.
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
