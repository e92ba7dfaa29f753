// Values as Python sees them: one object for each value, however often it is asked for.
#pragma once
#include <python/binding.hpp>

#include <vector>

namespace plugrad::python {

// What a Python Value holds. The value knows its object; the object's end makes it forget.
struct Scalar {
  explicit Scalar(Value v) : value(std::move(v)) {}
  ~Scalar();
  Scalar(const Scalar&) = delete;
  Scalar& operator=(const Scalar&) = delete;
  Value value;
  PyObject* self = nullptr;  // borrowed: the object that this lies in
};

extern PyTypeObject* value_type;
inline bool is_value(PyObject* x) { return Py_TYPE(x) == value_type; }
inline const Value& value_in(PyObject* x) { return nb::inst_ptr<Scalar>(x)->value; }
// A new reference to the object that stands for a value; the first one makes it.
PyObject* new_value(Value&& value);
inline nb::object wrap(Value value) { return nb::steal(new_value(std::move(value))); }
nb::list wrap_all(const std::vector<Value>& values);
// Values, or numbers that become Values on the device.
std::vector<Value> values_of(const nb::object& given, Device device);

}  // namespace plugrad::python
