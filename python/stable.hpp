// Functions that CPython's headers have as fast macros, and Python's stable ABI only as slower functions. A module for the
// stable ABI works with all later versions of Python, and a module for a single version uses the fast forms.
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
// Returns the function that calls an object.
inline vectorcallfunc caller_of(PyObject*) { return PyObject_Vectorcall; }
// CPython exports PyGILState_Check, but not as a part of the stable ABI. Returns false without it.
inline bool holds_gil() {
  static const auto check = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "PyGILState_Check"));
  return check && check() == 1;
}
#else
// Return the size of a list or tuple, and a borrowed element, whose index must be below the size.
inline Py_ssize_t list_size(PyObject* x) { return PySequence_Fast_GET_SIZE(x); }
inline PyObject* list_item(PyObject* x, Py_ssize_t i) { return PySequence_Fast_GET_ITEM(x, i); }
// Sets an element of a new list or tuple. Takes the reference to the item.
inline void set_item(PyObject* x, Py_ssize_t i, PyObject* item) {
  if (PyList_Check(x)) PyList_SET_ITEM(x, i, item);
  else PyTuple_SET_ITEM(x, i, item);
}
// Returns the value of a Python float.
inline double float_of(PyObject* x) { return PyFloat_AS_DOUBLE(x); }
inline vectorcallfunc caller_of(PyObject* x) { return PyVectorcall_Function(x); }
// Returns whether the calling thread holds the GIL.
inline bool holds_gil() { return PyGILState_Check() == 1; }
#endif

// Returns the name of an object's type without its module, for messages.
inline std::string type_name_of(nanobind::handle x) { return nanobind::str(x.type().attr("__name__")).c_str(); }

// Returns the function in a slot of a type: Py_tp_hash, for example.
template <class Function> Function slot_of(PyTypeObject* type, int slot) {
  return reinterpret_cast<Function>(PyType_GetSlot(type, slot));
}

}  // namespace plugrad::python
