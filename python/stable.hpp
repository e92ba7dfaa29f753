// What Python's stable ABI offers as functions only, and CPython's own headers faster: one module then serves all later
// versions of Python, while a module for one version loses nothing.
#pragma once
#include <nanobind/nanobind.h>

#include <dlfcn.h>

#include <string>

namespace plugrad::python {

#ifdef Py_LIMITED_API
inline Py_ssize_t list_size(PyObject* x) { return PyList_Check(x) ? PyList_Size(x) : PyTuple_Size(x); }
inline PyObject* list_item(PyObject* x, Py_ssize_t i) {
  return PyList_Check(x) ? PyList_GetItem(x, i) : PyTuple_GetItem(x, i);
}
inline void set_item(PyObject* x, Py_ssize_t i, PyObject* item) {
  if (PyList_Check(x)) PyList_SetItem(x, i, item);
  else PyTuple_SetItem(x, i, item);
}
inline double float_of(PyObject* x) { return PyFloat_AsDouble(x); }
// How to call an object: the function of type vectorcallfunc.
inline vectorcallfunc caller_of(PyObject*) { return PyObject_Vectorcall; }
// CPython exports the function, though not as a part of the stable ABI. Without it the answer is no.
inline bool holds_gil() {
  static const auto check = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "PyGILState_Check"));
  return check && check() == 1;
}
#else
// The size of a list or tuple, and a borrowed element, whose index must be below it.
inline Py_ssize_t list_size(PyObject* x) { return PySequence_Fast_GET_SIZE(x); }
inline PyObject* list_item(PyObject* x, Py_ssize_t i) { return PySequence_Fast_GET_ITEM(x, i); }
// Sets an element of a new list or tuple. Takes the reference to the item.
inline void set_item(PyObject* x, Py_ssize_t i, PyObject* item) {
  if (PyList_Check(x)) PyList_SET_ITEM(x, i, item);
  else PyTuple_SET_ITEM(x, i, item);
}
// The value of a Python float.
inline double float_of(PyObject* x) { return PyFloat_AS_DOUBLE(x); }
inline vectorcallfunc caller_of(PyObject* x) { return PyVectorcall_Function(x); }
// Whether the calling thread holds the GIL.
inline bool holds_gil() { return PyGILState_Check() == 1; }
#endif

// The name of an object's type, for messages, without its module.
inline std::string type_name_of(nanobind::handle x) { return nanobind::str(x.type().attr("__name__")).c_str(); }

// A function of a type as the interpreter calls it: Py_tp_hash, for example.
template <class Function> Function slot_of(PyTypeObject* type, int slot) {
  return reinterpret_cast<Function>(PyType_GetSlot(type, slot));
}

}  // namespace plugrad::python
