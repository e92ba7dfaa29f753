// Optimisers that Python programs derive from Optimizer.
#pragma once
#include <python/binding.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace plugrad::python {

// An optimiser whose groups are dicts of its Python object, and whose step is a method of the Python object.
class OwnOptimizer final : public nn::Optimizer {
 public:
  explicit OwnOptimizer(nb::handle self) : Optimizer("optimizer", {}, {}), self_(self) {}
  void step() override;
  double option(std::string_view name, size_t group) const override;
  void set_option(std::string_view name, double value, size_t group) override;
  std::vector<std::string> option_names() const override;  // the options of the first group whose values are numbers

 private:
  void update(const Update&, Updates&) override {}
  nb::dict group(size_t i) const;
  nb::handle self_;  // borrowed: the Python object that contains this object
};

inline bool is_own(nb::handle self) { return dynamic_cast<const OwnOptimizer*>(&nb::cast<const nn::Optimizer&>(self)); }

// Calls a function of plugrad._optimizers with the optimiser and more arguments.
template <class... Args> nb::object call_own(const char* name, nb::handle self, const Args&... args) {
  return nb::module_::import_("plugrad._optimizers").attr(name)(self, args...);
}

// Optimizer(params, defaults), for classes derived from Optimizer.
void construct_own(nb::pointer_and_handle<nn::Optimizer> self, const nb::object& parameters, const nb::dict& defaults);

}  // namespace plugrad::python
