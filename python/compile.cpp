// Steps that are recorded once and then replayed; plugrad/_compile.py makes functions of them.
#include <python/binding.hpp>

#include <plugrad/io/program.hpp>

#include <string_view>
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
StepResults replayed(const CompiledStep& step, const std::vector<Tensor>& arguments, std::string_view constants,
                     nb::handle f) {
  const auto run = [f](const std::vector<Tensor>& x) {
    const nb::gil_scoped_acquire locked;
    nb::list given;
    for (const Tensor& each : x) given.append(wrap(each));
    const nb::tuple made = nb::cast<nb::tuple>(f(*given));
    return StepResults{tensors_of(made[0]), nb::cast<uint64_t>(made[1])};
  };
  return unlocked([&] { return step.call(arguments, constants, run); });
}

nb::object tuple_of(StepResults results) {
  nb::list all;
  for (Tensor& each : results.tensors) all.append(wrap(std::move(each)));
  return nb::make_tuple(all, results.form);
}

nb::object call(const CompiledStep& step, const nb::list& arguments, const std::string& constants, const nb::callable& f) {
  return tuple_of(replayed(step, tensors_of(arguments), constants, f));
}

// The same for arguments that are all tensors, if they are; else None. Returns a lone tensor itself: form 0 says so.
nb::object call_with_tensors(const CompiledStep& step, const nb::tuple& arguments, const nb::callable& f) {
  std::vector<Tensor> tensors;
  tensors.reserve(arguments.size());
  for (const nb::handle each : arguments) {
    if (!is_tensor(each.ptr())) return nb::none();
    tensors.push_back(tensor_in(each.ptr()));
  }
  StepResults results = replayed(step, tensors, "tensors", f);
  if (results.form == 0) return wrap(std::move(results.tensors[0]));
  return tuple_of(std::move(results));
}

nb::list run_saved(const SavedProgram& program, const nb::list& inputs) {
  const std::vector<Tensor> given = tensors_of(inputs);
  nb::list all;
  for (Tensor& each : unlocked([&] { return program(given); })) all.append(wrap(std::move(each)));
  return all;
}

// Shapes and dtypes.
nb::list described(const std::vector<ProgramTensor>& tensors) {
  nb::list all;
  for (const ProgramTensor& each : tensors) {
    nb::list shape;
    for (const int64_t extent : each.shape) shape.append(extent);
    all.append(nb::make_tuple(nb::tuple(shape), DTypeObject{each.dtype}));
  }
  return all;
}
}  // namespace

void bind_compile(nb::module_& m) {
  nb::class_<CompiledStep>(m, "_CompiledStep")
      .def(
          "__init__",
          [](CompiledStep* self, const std::string& name, size_t entries, bool programs) {
            new (self) CompiledStep({name, entries, programs});
          },
          nb::arg("name"), nb::arg("entries"), nb::arg("programs"))
      .def("call", call, nb::arg("arguments"), nb::arg("constants"), nb::arg("function"))
      .def("call_with_tensors", call_with_tensors, nb::arg("arguments"), nb::arg("function"))
      .def("save", [](const CompiledStep& self,
                      const nb::object& path) { unlocked([&, file = path_of(path)] { save_program(self, file); }); },
           nb::arg("path"))
      .def("clear", [](const CompiledStep& self) { unlocked([&] { self.clear(); }); })
      .def("explain", [](const CompiledStep& self) { return unlocked([&] { return self.explain(); }); })
      .def("figures", [](const CompiledStep& self) {
        const CompileFigures figures = unlocked([&] { return self.figures(); });
        return nb::make_tuple(figures.recorded, figures.replayed, figures.called);
      });
  nb::class_<SavedProgram>(m, "_SavedProgram")
      .def("call", run_saved, nb::arg("inputs"))
      .def("inputs", [](const SavedProgram& self) { return described(self.inputs()); })
      .def("outputs", [](const SavedProgram& self) { return described(self.outputs()); })
      .def("explain", [](const SavedProgram& self) { return unlocked([&] { return self.explain(); }); });
  m.def(
      "_load_program",
      [](const nb::object& path, const DeviceLike& device) {
        return unlocked([file = path_of(path), on = device.get()] { return load_program(file, on); });
      },
      nb::arg("path"), nb::arg("device").none());
  m.def("_note_training", &note_training, nb::arg("module"));
}

}  // namespace plugrad::python
