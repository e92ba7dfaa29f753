// Classes that programs derive from Tensor. plugrad/_subclasses.py implements the protocol.
#include <python/binding.hpp>

namespace plugrad::python {

PyObject* dispatcher = nullptr;

namespace {
thread_local int undispatched = 0;

nb::object as_subclass(const Tensor& x, nb::handle type) {
  if (!PyType_Check(type.ptr()) || !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type.ptr()), tensor_type))
    throw nb::type_error("[as_subclass] cls must be Tensor or a class derived from it");
  nb::object made = nb::inst_alloc(type);
  new (nb::inst_ptr<Tensor>(made)) Tensor(x);
  nb::inst_mark_ready(made);
  return made;
}

nb::object made_as(nb::handle type, const Tensor& data, bool requires_grad) {
  Tensor shared = data.detach();
  if (requires_grad) shared.requires_grad_();
  return as_subclass(shared, type);
}

nb::object call_undispatched(nb::handle function, const nb::tuple& given, const nb::dict& named) {
  struct Undispatched {
    Undispatched() { ++undispatched; }
    ~Undispatched() { --undispatched; }
  } scope;
  return nb::steal(PyObject_Call(function.ptr(), given.ptr(), named.ptr()));
}
}  // namespace

bool has_derived(PyObject* const* arguments, size_t count) {
  if (undispatched) return false;
  for (size_t i = 0; i < count; ++i) {
    PyObject* const each = arguments[i];
    if (is_derived(each)) return true;
    if (!PyList_Check(each) && !PyTuple_Check(each)) continue;
    for (Py_ssize_t j = 0; j < list_size(each); ++j)
      if (is_derived(list_item(each, j))) return true;
  }
  return false;
}

void bind_subclasses(nb::module_& m, nb::class_<Tensor>& tensor) {
  tensor.def("as_subclass", as_subclass, nb::arg("cls"),
             "Returns the same tensor, with the same gradient and graph, as an object of Tensor or of a class derived from "
             "Tensor.");
  tensor.def_static("_make_subclass", made_as, nb::arg("cls"), nb::arg("data"), nb::arg("require_grad") = false,
                    "Returns a tensor of a derived class that shares data's memory but not its graph.");
  m.def("_dispatch_by", [](nb::object call) {
    if (!dispatcher) dispatcher = call.release().ptr();
  });
  m.def("_undispatched", call_undispatched);
  m.def("_is_ready", [](nb::handle x) { return nb::inst_ready(x); });
}

}  // namespace plugrad::python
