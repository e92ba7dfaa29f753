// Values in Python: each value always has the same object.
#pragma once
#include <python/binding.hpp>

#include <vector>

namespace plugrad::python {

// The contents of a Python Value. The value points to its object, and the object clears this pointer when it ends.
struct Scalar {
  explicit Scalar(Value v) : value(std::move(v)) {}
  ~Scalar();
  Scalar(const Scalar&) = delete;
  Scalar& operator=(const Scalar&) = delete;
  Value value;
  PyObject* self = nullptr;  // borrowed: the object that contains this
};

extern PyTypeObject* value_type;
inline bool is_value(PyObject* x) { return Py_TYPE(x) == value_type; }
inline const Value& value_in(PyObject* x) { return nb::inst_ptr<Scalar>(x)->value; }
// Returns a new reference to the object of a value; the first call makes the object.
PyObject* new_value(Value&& value);
inline nb::object wrap(Value value) { return nb::steal(new_value(std::move(value))); }
nb::list wrap_all(const std::vector<Value>& values);
// Converts one or several Values and numbers to Values. Numbers become Values on the device.
std::vector<Value> values_of(const nb::object& given, Device device);

}  // namespace plugrad::python
