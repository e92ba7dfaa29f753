// Looks whether what a compiled function depends on has changed, at each of its calls: so it calls no code of Python unless
// it must.
#include <python/guards.hpp>
#include <python/stable.hpp>

#include <bit>
#include <cstdint>

namespace plugrad::python {
namespace {

// The kinds of plugrad/_key_texts.py.
enum Kind : int64_t { kItems, kOwnItems, kAttributes, kList, kDict, kAsked, kFunction, kCell };

PyObject* g_absent = nullptr;    // stands for a missing value
PyObject* g_any = nullptr;       // stands for each value
PyTypeObject* g_weak = nullptr;  // the weak references among expected values

// Returns whether two objects are equal numbers or texts of the same type. 0.0 and -0.0 differ, and a NaN equals itself.
bool is_equal_plain(PyObject* a, PyObject* b) {
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyFloat_CheckExact(a))
    return std::bit_cast<uint64_t>(PyFloat_AsDouble(a)) == std::bit_cast<uint64_t>(PyFloat_AsDouble(b));
  if (!PyLong_CheckExact(a) && !PyUnicode_CheckExact(a) && !PyBytes_CheckExact(a)) return false;
  return PyObject_RichCompareBool(a, b, Py_EQ) == 1;
}

// Later versions have PyWeakref_GetRef, which Python's stable ABI of 3.12 lacks.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
PyObject* target_of(PyObject* weak) { return PyWeakref_GetObject(weak); }
#pragma GCC diagnostic pop

bool is_expected(PyObject* now, PyObject* expected) {
  if (Py_TYPE(expected) == g_weak) return now != Py_None && target_of(expected) == now;
  return now == expected || expected == g_any || is_equal_plain(now, expected);
}

// Returns the holder itself, or the object of a weak reference; null if that object is gone.
PyObject* living(PyObject* holder) {
  if (Py_TYPE(holder) != g_weak) return holder;
  PyObject* const object = target_of(holder);
  return object == Py_None ? nullptr : object;
}

bool items_hold(PyObject* dict, PyObject* names, PyObject* expected) {
  const Py_ssize_t count = list_size(names);
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* const now = PyDict_GetItemWithError(dict, list_item(names, i));  // borrowed
    if (!now && PyErr_Occurred()) return false;
    if (!is_expected(now ? now : g_absent, list_item(expected, i))) return false;
  }
  return true;
}

bool attributes_hold(PyObject* object, PyObject* names, PyObject* expected) {
  const Py_ssize_t count = list_size(names);
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* const now = PyObject_GetAttr(object, list_item(names, i));
    if (!now) PyErr_Clear();  // an empty cell, or no such attribute
    const bool holds = is_expected(now ? now : g_absent, list_item(expected, i));
    Py_XDECREF(now);
    if (!holds) return false;
  }
  return true;
}

bool list_holds(PyObject* list, PyObject* expected) {
  const Py_ssize_t count = list_size(expected);
  for (Py_ssize_t i = 0; i < count; ++i)
    if (list_size(list) != count || !is_expected(list_item(list, i), list_item(expected, i))) return false;
  return list_size(list) == count;
}

bool dict_holds(PyObject* dict, PyObject* keys, PyObject* expected) {
  const Py_ssize_t count = list_size(expected);
  Py_ssize_t place = 0, i = 0;
  PyObject *key, *value;
  while (PyDict_Next(dict, &place, &key, &value)) {
    if (i == count || !is_expected(key, list_item(keys, i)) || !is_expected(value, list_item(expected, i))) return false;
    ++i;
  }
  return i == count;
}

// Of an object: its type, and the names of all its attributes, so that a new attribute is noticed.
bool own_items_hold(PyObject* object, PyObject* names, PyObject* expected, PyObject* type) {
  if (reinterpret_cast<PyObject*>(Py_TYPE(object)) != type) return false;
  PyObject* const dict = PyObject_GenericGetDict(object, nullptr);
  if (!dict) return false;
  const bool hold = PyDict_Check(dict) && dict_holds(dict, names, expected);
  Py_DECREF(dict);
  return hold;
}

bool is_asked(PyObject* question) {
  PyObject* const answer = PyObject_CallNoArgs(question);
  const bool holds = answer && PyObject_IsTrue(answer) == 1;
  Py_XDECREF(answer);
  return holds;
}

#ifdef Py_LIMITED_API
bool function_holds(PyObject* f, PyObject* names, PyObject* expected) { return attributes_hold(f, names, expected); }
bool cell_holds(PyObject* cell, PyObject* names, PyObject* expected) { return attributes_hold(cell, names, expected); }
#else
// The names are __code__, __defaults__ and __kwdefaults__.
bool function_holds(PyObject* f, PyObject*, PyObject* expected) {
  PyObject* const parts[] = {PyFunction_GET_CODE(f), PyFunction_GET_DEFAULTS(f), PyFunction_GET_KW_DEFAULTS(f)};
  for (Py_ssize_t i = 0; i < 3; ++i)
    if (!is_expected(parts[i] ? parts[i] : Py_None, list_item(expected, i))) return false;
  return true;
}
bool cell_holds(PyObject* cell, PyObject*, PyObject* expected) {
  PyObject* const now = PyCell_GET(cell);
  return is_expected(now ? now : g_absent, list_item(expected, 0));
}
#endif

bool guard_holds(PyObject* guard) {
  PyObject* const holder = living(list_item(guard, 1));
  if (!holder) return false;
  const nb::object kept = nb::borrow(holder);  // a weak reference does not keep it
  PyObject *const names = list_item(guard, 2), *const expected = list_item(guard, 3);
  switch (PyLong_AsLongLong(list_item(guard, 0))) {
    case kItems: return items_hold(holder, names, expected);
    case kOwnItems: return own_items_hold(holder, names, expected, list_item(guard, 4));
    case kAttributes: return attributes_hold(holder, names, expected);
    case kList: return list_holds(holder, expected);
    case kDict: return dict_holds(holder, names, expected);
    case kAsked: return is_asked(holder);
    case kFunction: return function_holds(holder, names, expected);
    case kCell: return cell_holds(holder, names, expected);
    default: return false;
  }
}
}  // namespace

bool guards_hold(PyObject* guards) {
  const Py_ssize_t count = list_size(guards);
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (guard_holds(list_item(guards, i))) continue;
    PyErr_Clear();
    return false;
  }
  return true;
}

void bind_guards(nb::module_& m) {
  g_absent = nb::module_::import_("builtins").attr("object")().release().ptr();
  g_any = nb::module_::import_("builtins").attr("object")().release().ptr();
  m.attr("_ABSENT") = nb::borrow(g_absent);
  m.attr("_ANY") = nb::borrow(g_any);
  m.def("_guards_hold", [](nb::handle guards) { return guards_hold(guards.ptr()); });
  m.def("_set_weak_type",
        [](nb::handle type) { g_weak = reinterpret_cast<PyTypeObject*>(nb::borrow(type).release().ptr()); });
}

}  // namespace plugrad::python
