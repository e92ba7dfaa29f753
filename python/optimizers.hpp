// The optimisers of plugrad.optim.
#pragma once
#include <python/binding.hpp>

#include <functional>

namespace plugrad::python {

// Reads a constructor's argument `params` and calls make with its groups. Returns the Python objects of the parameters, a
// list for each group; the optimiser keeps them as "_parameters", so that a pickle of a model and its optimiser holds each
// parameter once.
nb::list construct_optimizer(const nb::object& parameters, const std::function<void(nn::ParameterGroups)>& make);

void bind_kinds(nb::module_& m);

}  // namespace plugrad::python
