// The parts of plugrad.func: vmap, forward mode, and handles for reverse mode.
#include <python/binding.hpp>

#include <plugrad/func/jvp.hpp>
#include <plugrad/func/vjp.hpp>

#include <memory>
#include <string>
#include <utility>

namespace plugrad::python {
namespace {
// An object that lives from __enter__ to __exit__, because its scope ends with it. Both run on one thread.
template <class Scope> struct Entered {
  std::unique_ptr<Scope> scope;
  const Scope& get() const {
    if (scope) return *scope;
    throw nb::value_error("[func] the function of this transform has ended");
  }
};

func::Randomness randomness_of(const std::string& name) {
  if (name == "error") return func::Randomness::error;
  if (name == "different") return func::Randomness::different;
  if (name == "same") return func::Randomness::same;
  throw nb::value_error(("[vmap] randomness is '" + name + "': give \"error\", \"different\" or \"same\"").c_str());
}
}  // namespace

void bind_transforms(nb::module_& m) {
  using Examples = Entered<func::Examples>;
  nb::class_<Examples>(m, "_Examples")
      .def(
          "__init__",
          [](Examples* self, int64_t size, const std::string& randomness) {
            new (self) Examples{std::make_unique<func::Examples>(size, randomness_of(randomness))};
          },
          nb::arg("size"), nb::arg("randomness"))
      .def("close", [](Examples& self) { self.scope.reset(); })
      .def("wrap", [](const Examples& self, const Tensor& x, int axis) { return wrap(self.get().wrap(x, axis)); })
      .def("unwrap", [](const Examples& self, const Tensor& y, int axis) { return wrap(self.get().unwrap(y, axis)); });
  using Tangents = Entered<func::Tangents>;
  nb::class_<Tangents>(m, "_Tangents")
      .def("__init__", [](Tangents* self) { new (self) Tangents{std::make_unique<func::Tangents>()}; })
      .def("close", [](Tangents& self) { self.scope.reset(); })
      .def("pair",
           [](const Tangents& self, const Tensor& x, const Tensor& tangent) { return wrap(self.get().pair(x, tangent)); })
      .def("primal", [](const Tangents& self, const Tensor& y) { return wrap(self.get().primal(y)); })
      .def("tangent", [](const Tangents& self, const Tensor& y) { return wrap(self.get().tangent(y)); });
  nb::class_<func::Recorded>(m, "_Recorded").def("__init__", [](func::Recorded* self) { new (self) func::Recorded; });
  m.def(
      "_wanted",
      [](const std::vector<Tensor>& x) {
        nb::list all;
        for (Tensor& each : func::wanted(x)) all.append(wrap(std::move(each)));
        return all;
      },
      nb::arg("x"));
  m.def("_ungraphed", [](const Tensor& x) { return wrap(func::ungraphed(x)); }, nb::arg("x"));
  m.def("_has_outer_graph", &func::has_outer_graph, nb::arg("outputs"), nb::arg("handles"));
}

}  // namespace plugrad::python
