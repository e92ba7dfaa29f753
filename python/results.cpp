// Results that hold several tensors: the named tuples of plugrad._results.
#include <python/binding.hpp>

namespace plugrad::python {
namespace {
// Returns a new reference to a type of plugrad._results. The callers keep the reference until the process ends.
PyObject* result_type(const char* name) { return nb::module_::import_("plugrad._results").attr(name).inc_ref().ptr(); }
PyObject* values_indices_type() {
  static PyObject* const type = result_type("ValuesIndices");
  return type;
}
PyObject* min_max_type() {
  static PyObject* const type = result_type("MinMax");
  return type;
}
PyObject* quantized_type() {
  static PyObject* const type = result_type("Quantized");
  return type;
}

PyObject* new_pair(PyObject* type, const Tensor& first, const Tensor& second) {
  return nb::handle(type)(wrap(first), wrap(second)).release().ptr();
}
}  // namespace

PyObject* new_result(const ValuesIndices& result) { return new_pair(values_indices_type(), result.values, result.indices); }
PyObject* new_result(const MinMax& result) { return new_pair(min_max_type(), result.min, result.max); }
PyObject* new_result(const Quantized& result) { return new_pair(quantized_type(), result.codes, result.scales); }

PyObject* values_alone(PyObject* result) {
  if (reinterpret_cast<PyObject*>(Py_TYPE(result)) != values_indices_type()) return result;
  const nb::object pair = nb::steal(result);
  return nb::object(pair[0]).release().ptr();
}

}  // namespace plugrad::python
