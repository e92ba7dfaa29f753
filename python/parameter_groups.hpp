// Groups of an optimiser's parameters, and options by their names in Python.
#pragma once
#include <python/binding.hpp>

#include <functional>
#include <string>
#include <vector>

namespace plugrad::python {

// One group of an optimiser, as a mapping whose values can be set.
struct GroupView {
  nb::object optimizer;  // keeps the optimiser alive
  size_t index;
  nn::Optimizer& get() const { return nb::cast<nn::Optimizer&>(optimizer); }
};

// Returns the names of an optimiser's options in Python, such as betas for beta1 and beta2.
std::vector<std::string> names_of(const nn::Optimizer& optimizer);
nb::object option_of(const nn::Optimizer& optimizer, const std::string& name, size_t group);

// Converts an option from Python and calls `write(name, number)`, for each number of a tuple, such as betas.
void write_option(const std::string& name, nb::handle value,
                  const std::function<void(const std::string& option, double number)>& write);

void bind_groups(nb::module_& m);

}  // namespace plugrad::python
