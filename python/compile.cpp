// Steps that are recorded once and then replayed; plugrad/_compile.py makes functions of them.
#include <python/binding.hpp>
#include <python/held.hpp>

#include <memory>
#include <utility>
#include <vector>

namespace plugrad::python {
namespace {

std::vector<Tensor> tensors_of(const nb::handle& given) {
  std::vector<Tensor> all;
  for (const nb::handle each : given) all.push_back(each.is_none() ? Tensor() : tensor_in(each.ptr()));
  return all;
}

// f: takes tensors; returns a list of tensors and None, and a number that says what they are.
nb::tuple call(const CompiledStep& step, const nb::list& arguments, const std::string& constants, nb::callable f) {
  const auto run = [held = Held(std::move(f))](const std::vector<Tensor>& x) {
    const nb::gil_scoped_acquire locked;
    nb::list given;
    for (const Tensor& each : x) given.append(wrap(each));
    const nb::tuple made = nb::cast<nb::tuple>(held.get()(*given));
    return StepResults{tensors_of(made[0]), nb::cast<uint64_t>(made[1])};
  };
  StepResults results = unlocked([&, x = tensors_of(arguments)] { return step.call(x, constants, run); });
  nb::list all;
  for (Tensor& each : results.tensors) all.append(wrap(std::move(each)));
  return nb::make_tuple(all, results.form);
}
}  // namespace

void bind_compile(nb::module_& m) {
  nb::class_<CompiledStep>(m, "_CompiledStep")
      .def(
          "__init__",
          [](CompiledStep* self, const std::string& name, size_t entries) { new (self) CompiledStep({name, entries}); },
          nb::arg("name"), nb::arg("entries"))
      .def("call", call, nb::arg("arguments"), nb::arg("constants"), nb::arg("function"))
      .def("clear", [](const CompiledStep& self) { unlocked([&] { self.clear(); }); })
      .def("explain", [](const CompiledStep& self) { return unlocked([&] { return self.explain(); }); })
      .def("figures", [](const CompiledStep& self) {
        const CompileFigures figures = unlocked([&] { return self.figures(); });
        return nb::make_tuple(figures.recorded, figures.replayed, figures.called);
      });
  m.def("_note_training", &note_training, nb::arg("module"));
}

}  // namespace plugrad::python
