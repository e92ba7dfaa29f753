#include <python/own_optimizers.hpp>

#include <new>

namespace plugrad::python {

void OwnOptimizer::step() {
  const nb::gil_scoped_acquire locked;
  self_.attr("step")();
}

nb::dict OwnOptimizer::group(size_t i) const { return nb::cast<nb::dict>(self_.attr("_groups")[i]); }

double OwnOptimizer::option(std::string_view name, size_t i) const {
  const nb::gil_scoped_acquire locked;
  const std::string key(name);
  const nb::dict options = group(i);
  if (!options.contains(key.c_str()))
    throw nb::value_error(("[optimizer] the group has no option '" + key + "': give it in defaults").c_str());
  return taken<double>(options[key.c_str()], "[optimizer] the option '" + key + "'", "a number");
}

void OwnOptimizer::set_option(std::string_view name, double value, size_t i) {
  const nb::gil_scoped_acquire locked;
  group(i)[std::string(name).c_str()] = value;
}

std::vector<std::string> OwnOptimizer::option_names() const {
  const nb::gil_scoped_acquire locked;
  std::vector<std::string> names;
  if (!groups()) return names;
  for (const auto& [key, value] : group(0)) {
    double number = 0;
    if (nb::try_cast(value, number)) names.push_back(nb::cast<std::string>(key));
  }
  return names;
}

void construct_own(nb::pointer_and_handle<nn::Optimizer> self, const nb::object& parameters, const nb::dict& defaults) {
  if (self.h.type().is(nb::type<nn::Optimizer>()))
    throw nb::type_error("[Optimizer] derive a class with a method step from it, or take one of plugrad.optim");
  new (static_cast<void*>(self.p)) OwnOptimizer(self.h);
  nb::inst_mark_ready(self.h);
  call_own("begin", self.h, parameters, defaults);
}

}  // namespace plugrad::python
