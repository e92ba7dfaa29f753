#include <python/binding.hpp>

#include <new>
#include <typeinfo>

namespace plugrad::python {
namespace {

// The message for objects inside of arguments, such as the elements of a list. The signature does not show their type.
constexpr const char* kWrongType =
    "[call] an argument holds an object of another type, or a number of another size, than its docstring says";

PyObject* cancelled_error() {
  static PyObject* const type =
      nb::module_::import_("concurrent.futures").attr("CancelledError").inc_ref().ptr();  // kept for ever
  return type;
}

PyObject* type_for(Code code) {
  switch (code) {
    case Code::invalid: return PyExc_ValueError;
    case Code::unsupported: return PyExc_NotImplementedError;
    case Code::out_of_memory: return PyExc_MemoryError;
    case Code::index_error: return PyExc_IndexError;
    case Code::io_error: return PyExc_OSError;
    case Code::peer_lost: return PyExc_ConnectionError;
    case Code::timed_out: return PyExc_TimeoutError;
    case Code::cancelled: return cancelled_error();
    default: return PyExc_RuntimeError;
  }
}

// A message may contain a file name that is not UTF-8.
void set_text(const Error& error) {
  const std::string text = error.what();
  PyObject* message = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace");
  if (!message) return;
  PyErr_SetObject(type_for(error.code()), message);
  Py_DECREF(message);
}

void set_core_error(const std::exception_ptr& error, void*) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    set_text(e);
  } catch (const std::bad_cast&) {
    PyErr_SetString(PyExc_TypeError, kWrongType);
  }
}
}  // namespace

void set_error(const std::exception_ptr& error) noexcept {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    set_text(e);
  } catch (nb::python_error& e) {
    e.restore();
  } catch (const nb::builtin_exception& e) {
    PyErr_SetString(e.type() == nb::exception_type::type_error ? PyExc_TypeError : PyExc_ValueError, e.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::bad_cast&) {
    PyErr_SetString(PyExc_TypeError, kWrongType);
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  } catch (...) {
    PyErr_SetString(PyExc_SystemError, "plugrad threw an exception of an unknown type");
  }
}

void bind_errors(nb::module_&) { nb::register_exception_translator(set_core_error); }

}  // namespace plugrad::python
