// Steps that are recorded once and then replayed; plugrad/_compile.py makes functions of them.
#include <python/binding.hpp>
#include <python/guards.hpp>

#include <plugrad/io/saved_model.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plugrad::python {
void bind_cancellation(nb::module_& m);  // of cancel.cpp

namespace {

// A compiled step with what it depends on besides arguments, as plugrad/_compile.py last found it.
struct PythonStep : CompiledStep {
  using CompiledStep::CompiledStep;
  nb::object guards;    // a tuple
  std::string outside;  // a text for the values that these guards expect
};

int visit_guards(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self)) Py_VISIT(nb::inst_ptr<PythonStep>(self)->guards.ptr());
  return 0;
}

int drop_guards(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<PythonStep>(self)->guards.reset();
  return 0;
}

// Returns a text for what a step depends on besides arguments.
std::string outside_of(nb::handle self) {
  PythonStep& step = *nb::inst_ptr<PythonStep>(self);
  const nb::object guards = step.guards;  // a guard may run code that replaces them
  if (!guards.is_valid() || !guards_hold(guards.ptr())) self.attr("_look")();
  return step.outside + dtype_name(default_floating()) + ";";
}

std::vector<Tensor> tensors_of(const nb::handle& given) {
  std::vector<Tensor> all;
  all.reserve(nb::len(given));
  for (const nb::handle each : given) all.push_back(each.is_none() ? Tensor() : tensor_in(each.ptr()));
  return all;
}

nb::list list_of(std::vector<Tensor> tensors) {
  nb::list all;
  for (Tensor& each : tensors) all.append(wrap(std::move(each)));
  return all;
}

// function: takes a list of tensors; returns a list of tensors and None, and a number for the form of the results.
template <class Function>
StepResults replayed(const CompiledStep& step, const std::vector<Tensor>& arguments, std::string_view constants,
                     const Function& function, const CompiledStep::Numbers& numbers = {}) {
  const auto run = [&function](const std::vector<Tensor>& x) {
    const nb::gil_scoped_acquire locked;
    const nb::tuple made = nb::cast<nb::tuple>(function(list_of(x)));
    return StepResults{tensors_of(made[0]), nb::cast<uint64_t>(made[1])};
  };
  return unlocked([&] { return step.call(arguments, constants, run, numbers); });
}

// outside: as _key_outside gave it. numbers: None, or a function of a form that returns the numbers of a replay.
nb::tuple call(const PythonStep& step, const std::string& outside, const nb::list& arguments, const std::string& constants,
               const nb::callable& f, const nb::object& numbers) {
  const auto given = [&numbers](uint64_t form) {
    const nb::gil_scoped_acquire locked;
    return nb::cast<std::vector<double>>(numbers(form));
  };
  StepResults results = replayed(
      step, tensors_of(arguments), outside + constants, [&](const nb::list& x) { return f(outside, *x); },
      numbers.is_none() ? CompiledStep::Numbers() : CompiledStep::Numbers(given));
  return nb::make_tuple(list_of(std::move(results.tensors)), results.form);
}

bool knows(const PythonStep& self, const std::string& outside, const nb::list& arguments, const std::string& constants) {
  return unlocked([&, given = tensors_of(arguments)] { return self.knows(given, outside + constants); });
}

bool are_tensors(const nb::tuple& all) {
  for (const nb::handle each : all)
    if (!is_tensor(each.ptr())) return false;
  return true;
}

// Calls an object of plugrad/_compile.py. A call with only positional tensors and a single tensor as the result (form 0)
// runs without Python code; the object's methods handle all other calls.
PyObject* call_object(PyObject* object, PyObject* arguments, PyObject* named) {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    const nb::handle self = object;
    if (!nb::inst_ready(self)) throw nb::type_error("[compile] the object's __init__ was not called");
    const nb::tuple given = nb::borrow<nb::tuple>(arguments);
    if ((named && PyDict_Size(named)) || !are_tensors(given))
      return self.attr("_call")(given, named ? nb::borrow<nb::dict>(named) : nb::dict()).release().ptr();
    const std::string constants = outside_of(self);
    const auto function = [&](const nb::list& x) { return self.attr("_run")(constants, *x); };
    StepResults results = replayed(*nb::inst_ptr<PythonStep>(self), tensors_of(given), constants, function);
    if (results.form == 0) return wrap(std::move(results.tensors[0])).release().ptr();
    return self.attr("_results")(list_of(std::move(results.tensors)), results.form).release().ptr();
  });
}

nb::list run_saved(const SavedModel& model, const nb::list& inputs) {
  for (size_t i = 0; i < nb::len(inputs); ++i) {
    if (is_tensor(inputs[i].ptr())) continue;
    const std::string kind = nb::cast<std::string>(nb::handle(inputs[i]).type().attr("__name__"));
    throw nb::type_error(("[saved model] input " + std::to_string(i) + " is a " + kind + ": pass a Tensor").c_str());
  }
  const std::vector<Tensor> given = tensors_of(inputs);
  return list_of(unlocked([&] { return model(given); }));
}

// Returns pairs of a shape and a dtype.
nb::list described(const std::vector<ModelTensor>& tensors) {
  nb::list all;
  for (const ModelTensor& each : tensors) {
    nb::list shape;
    for (const int64_t extent : each.shape) shape.append(extent);
    all.append(nb::make_tuple(nb::tuple(shape), DTypeObject{each.dtype}));
  }
  return all;
}

void bind_steps(nb::module_& m) {
  static const PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(call_object)},
                                      {Py_tp_traverse, reinterpret_cast<void*>(visit_guards)},
                                      {Py_tp_clear, reinterpret_cast<void*>(drop_guards)},
                                      {0, nullptr}};
  nb::class_<PythonStep>(m, "_CompiledStep", nb::type_slots(slots))
      .def(
          "__init__",
          [](PythonStep* self, const std::string& name, size_t entries, bool fuse, uint64_t memory) {
            new (self) PythonStep(CompileOptions{.name = name, .entries = entries, .memory = memory, .fuse = fuse});
          },
          nb::arg("name"), nb::arg("entries"), nb::arg("fuse"), nb::arg("memory"))
      .def("_replayed", call, nb::arg("outside"), nb::arg("arguments"), nb::arg("constants"), nb::arg("function"),
           nb::arg("numbers").none())
      .def("_knows", knows, nb::arg("outside"), nb::arg("arguments"), nb::arg("constants"))
      .def(
          "_save",
          [](const PythonStep& self, const nb::object& path) {
            unlocked([&, file = path_of(path)] { save_model(self, file); });
          },
          nb::arg("path"))
      .def(
          "_set_outside",
          [](PythonStep& self, nb::object guards, std::string outside) {
            if (guards.is_none()) self.guards.reset();
            else self.guards = std::move(guards);
            self.outside = std::move(outside);
          },
          nb::arg("guards").none(), nb::arg("outside"))
      .def("_key_outside", outside_of)
      .def("_note_change",
           [](const PythonStep& self, std::string what) { unlocked([&] { self.note_change(std::move(what)); }); })
      .def("_clear", [](const PythonStep& self) { unlocked([&] { self.clear(); }); })
      .def("_explain", [](const PythonStep& self) { return unlocked([&] { return self.explain(); }); })
      .def("_figures", [](const PythonStep& self) {
        const CompileFigures figures = unlocked([&] { return self.figures(); });
        return nb::make_tuple(figures.recorded, figures.replayed, figures.called);
      });
}

void bind_saved_models(nb::module_& m) {
  nb::class_<SavedModel>(m, "_SavedModel")
      .def("call", run_saved, nb::arg("inputs"))
      .def("inputs", [](const SavedModel& self) { return described(self.inputs()); })
      .def("outputs", [](const SavedModel& self) { return described(self.outputs()); })
      .def("explain", [](const SavedModel& self) { return unlocked([&] { return self.explain(); }); });
  m.def(
      "_load_model",
      [](const nb::object& path, const DeviceLike& device, bool mmap) {
        return unlocked([file = path_of(path), on = device.get(), mmap] { return load_model(file, on, mmap); });
      },
      nb::arg("path"), nb::arg("device").none(), nb::arg("mmap"));
}
}  // namespace

void bind_compile(nb::module_& m) {
  bind_cancellation(m);
  bind_guards(m);
  bind_steps(m);
  bind_saved_models(m);
  m.def("_set_lifted_type", &set_lifted_type);
  m.def("_note_number_read", &note_number_read);
  m.def("_begin_lifting", &begin_lifting);
  m.def("_end_lifting", &end_lifting);
  m.def("_is_recording", &is_recording_step);
  m.def("_note_training", &note_training, nb::arg("module"));
  m.def("_note_hook", &note_hook);
  m.def("_note_unrepeatable", [](const std::string& why) { note_unrepeatable(why.c_str()); });
}

}  // namespace plugrad::python
