#include <python/binding.hpp>

#include <cstdlib>
#include <string_view>

namespace plugrad::python {
void bind_distributed(nb::module_& m);  // of distributed.cpp
void bind_fft(nb::module_& m);          // of fft.cpp
void bind_linalg(nb::module_& m);       // of linalg.cpp
void bind_files(nb::module_& m);        // of files.cpp
void bind_profilers(nb::module_& m);    // of profiler.cpp
void bind_tokenizers(nb::module_& m);   // of tokenizers.cpp

namespace {
void bind_algebra(nb::module_& m) {
  bind_fft(m);
  bind_linalg(m);
}
}  // namespace
}  // namespace plugrad::python

// nanobind's own initialisation precedes the module's body, so its function gets another name.
#define PyInit__plugrad plugrad_initialise
NB_MODULE(_plugrad, m) {
  using namespace plugrad::python;
  m.doc() = "plugrad's core.";
  // A thread that runs until the process ends keeps its objects. This is not a leak, so users get no warning of it.
  const char* const log = std::getenv("PLUGRAD_LOG");
  nb::set_leak_warnings(log && std::string_view(log) == "debug");
  bind_errors(m);
  bind_dtypes(m);
  bind_devices(m);
  auto tensor = bind_tensor(m);
  bind_functions(m, tensor);
  bind_reductions(m, tensor);
  bind_sizes(m);
  bind_variadic(m, tensor);
  bind_overloads(m, tensor);
  bind_further_names(m, tensor);
  bind_interchange(m, tensor);
  bind_pickling(m, tensor);
  bind_runtime(m);
  bind_autograd(m);
  bind_callbacks(m, tensor);
  bind_compile(m);
  bind_private_ops(m);
  bind_derivatives(m);
  bind_values(m);
  bind_networks(m);
  bind_nn(m);
  bind_optimizers(m);
  bind_printing(m);
  bind_schedules(m);
  bind_amp(m);
  bind_io(m);
  bind_files(m);
  bind_tokenizers(m);
  bind_algebra(m);
  bind_profilers(m);
  bind_distributed(m);
  bind_subclasses(m, tensor);
  bind_calls(m);
}
#undef PyInit__plugrad

// Refuses an import by a second interpreter: types and thread states belong to one interpreter, and objects of a second
// interpreter would crash the process.
extern "C" NB_EXPORT PyObject* PyInit__plugrad() {
  static int64_t owner = -1;
  const int64_t here = PyInterpreterState_GetID(PyInterpreterState_Get());
  if (owner >= 0 && owner != here) {
    PyErr_SetString(PyExc_ImportError,
                    "[plugrad] another interpreter of this process has imported plugrad, which serves "
                    "one: use processes or threads in place of subinterpreters");
    return nullptr;
  }
  owner = here;
  return plugrad_initialise();
}
