// Shared declarations of the module: parameters from Python, errors, and the global interpreter lock (GIL).
#pragma once
#include <plugrad/plugrad.hpp>
#include <python/stable.hpp>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <unistd.h>

#include <exception>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace plugrad::python {
namespace nb = nanobind;

// --- Errors.

// Sets the Python error for an exception: ValueError for arguments that do not fit, NotImplementedError for ops that a
// device does not support, TypeError, IndexError, MemoryError, OSError, ConnectionError or TimeoutError for other
// processes, else RuntimeError.
void set_error(const std::exception_ptr& error) noexcept;

// Runs the body of a type's slot. Converts an exception to a Python error and returns `failed`.
template <class Result, class Body> Result guarded(Result failed, Body&& body) noexcept {
  try {
    return body();
  } catch (...) {
    set_error(std::current_exception());
    return failed;
  }
}

// Converts an object inside of an argument to T. Throws TypeError with the role of the object and the expected type.
template <class T> T taken(nb::handle given, const std::string& role, const char* expected) {
  T value;
  if (nb::try_cast<T>(given, value)) return value;
  throw nb::type_error((role + " is of type " + type_name_of(given.ptr()) + ": expected " + expected).c_str());
}

// --- The GIL.

// An op on fewer elements takes less time than a thread needs to acquire the lock.
constexpr int64_t kLong = 8192;

inline bool is_long(const Tensor& x) { return x.defined() && x.count() >= kLong; }
inline bool is_long(const std::vector<Tensor>&) { return true; }
// shape: a factory's shape or a list of dims. It may hold -1, or extents too large for any memory.
inline bool is_long(const Shape& shape) {
  double count = 1;
  for (const int64_t extent : shape) count *= static_cast<double>(extent);
  return count >= static_cast<double>(kLong);
}
template <class T> bool is_long(const T&) { return false; }

// Releases the lock for its lifetime. While the interpreter shuts down, Python ends a thread that asks for the lock
// by pthread_exit, which must not unwind noexcept functions: such a thread waits here until the process ends.
class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  ~Unlocked() {
    try {
      PyEval_RestoreThread(state_);
    } catch (...) {  // only the forced unwinding of pthread_exit reaches this handler
      for (;;) pause();
    }
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

// Calls f without the lock. f must own the objects that it uses: another thread may release Python objects during the call.
template <class F> auto unlocked(F f) {
  const Unlocked released;
  return f();
}

// --- Parameters. A caster only keeps the object. The function's body converts the object, so that an exception of the
// conversion reaches Python.

// A Device, the name of a device, or None for the default device.
struct DeviceLike {
  nb::object given;
  Device get() const;
};
// Returns the device of that name. Throws Error with the reason if there is none.
Device named_device(const std::string& name);
// Adds the plugin directories that other packages announce. Runs once, before the first use of a device.
void search_entry_points();

// A DType as a Python object. nanobind would bind a plain DType as an enumeration.
struct DTypeObject {
  DType value;
};

// A DType or its name ("f32", "float32"), a dtype of NumPy or PyTorch, Python's int, float or bool, or None for the default.
struct DTypeLike {
  nb::object given;
  std::optional<DType> get() const;
  DType get(DType otherwise) const { return get().value_or(otherwise); }
};

// A number or a sequence of numbers; None, which means no numbers, if the parameter permits None.
struct NumbersLike {
  std::vector<double> numbers;
};

// A whole number or a sequence of whole numbers; None, which means no numbers, if the parameter permits None.
struct ShapeLike {
  std::vector<int64_t> extents;
  Shape get() const { return Shape(extents); }
};

struct NumberLike {
  Number value{0};
  bool boolean = false;
};
// Returns whether x is a number and not an array, and sets number: int, float, bool or a scalar of NumPy. Never leaves an
// error set.
bool number_of(PyObject* x, Number& number) noexcept;
// The type of numbers that compiled steps take anew in each replay; whether x is one; and x as a plain number, so that the
// step depends on its value.
void set_lifted_type(nb::handle type);
bool is_lifted(PyObject* x) noexcept;
nb::object plain_number(PyObject* x);
// Returns whether x is Python's or NumPy's bool.
bool is_bool(PyObject* x) noexcept;

// Returns whether this is the name of a dtype.
bool names_dtype(const std::string& name);

// The name of a reduction: "none", "mean", "sum" or "batchmean".
struct ReductionLike {
  std::string name;
  Reduction get() const;
};

// Converts a path: str, bytes or os.PathLike. Throws ValueError for a path with the character 0.
std::string path_of(const nb::object& path);
// Returns str(x) in UTF-8. A lone surrogate, which has no UTF-8 form, becomes "\\ud800".
std::string utf8_of(nb::handle x);

// --- Tensors.

// The Python type; null until bind_tensor.
extern PyTypeObject* tensor_type;
// Handles calls with a tensor of a derived class among the arguments; null as long as there is no such class.
extern PyObject* dispatcher;
// Returns whether an argument, or an element of a list or tuple, is a tensor of a derived class; false inside of
// _undispatched.
bool has_derived(PyObject* const* arguments, size_t count);
inline bool is_derived(PyObject* x) { return Py_TYPE(x) != tensor_type && PyType_IsSubtype(Py_TYPE(x), tensor_type); }
inline bool is_tensor(PyObject* x) {
  if (Py_TYPE(x) == tensor_type) [[likely]]
    return true;
  return dispatcher && is_derived(x);
}
inline Tensor& tensor_in(PyObject* x) { return *nb::inst_ptr<Tensor>(x); }
// Returns a new reference to a new object.
PyObject* new_tensor(Tensor&& tensor);
inline nb::object wrap(Tensor tensor) { return tensor.defined() ? nb::steal(new_tensor(std::move(tensor))) : nb::none(); }

// Returns a new reference to a named tuple of plugrad._results.
PyObject* new_result(const ValuesIndices& result);
PyObject* new_result(const MinMax& result);
PyObject* new_result(const Quantized& result);
// Returns the values of a ValuesIndices and releases the reference to it; returns any other object unchanged.
PyObject* values_alone(PyObject* result);

// Returns the extents as a tuple that also equals lists.
nb::object shape_tuple(const Shape& shape);

// Makes a tensor of numbers, nested sequences, arrays (buffer protocol or DLPack) or tensors. Without a dtype, numbers get
// the default dtype, bools get bool, and arrays keep their dtype. Sets *from_numbers, if given, to whether the data were
// numbers.
Tensor tensor_from(nb::handle data, std::optional<DType> dtype, Device device, bool* from_numbers = nullptr);
// Returns i64, as PyTorch infers, for whole numbers and nested lists of whole numbers; nothing for any other data.
std::optional<DType> dtype_of_numbers(nb::handle data);
nb::object to_list(const Tensor& x);
// Returns whether x is a list, or an array of another library, that can be an operand with a tensor.
bool holds_numbers(PyObject* x);
// Makes x a tensor on the device of `other`. Arrays keep their dtype; numbers in lists, and arrays of rank 0, take the dtype
// of `other` if that dtype can represent their kind.
Tensor tensor_beside(PyObject* x, const Tensor& other);

// x[key] and x[key] = value.
Tensor index_tensor(const Tensor& x, PyObject* key);
void assign_index(const Tensor& x, PyObject* key, PyObject* value);

// --- The parts.
void bind_errors(nb::module_& m);
void bind_dtypes(nb::module_& m);
void bind_devices(nb::module_& m);
void bind_runtime(nb::module_& m);
nb::class_<Tensor> bind_tensor(nb::module_& m);
void bind_functions(nb::module_& m, nb::class_<Tensor>& tensor);
void bind_further_names(nb::module_& m, nb::class_<Tensor>& tensor);
void bind_reductions(nb::module_& m, nb::class_<Tensor>& tensor);
void bind_sizes(nb::module_& m);
void bind_variadic(nb::module_& m, nb::class_<Tensor>& tensor);
void bind_overloads(nb::module_& m, nb::class_<Tensor>& tensor);
void bind_in_place(nb::class_<Tensor>& tensor);
void bind_movers(nb::class_<Tensor>& tensor);
void bind_parts(nb::class_<Tensor>& tensor);
void bind_indexing(nb::module_& m, nb::class_<Tensor>& tensor);
void bind_pickling(nb::module_& m, nb::class_<Tensor>& tensor);
void bind_interchange(nb::module_& m, nb::class_<Tensor>& tensor);
void bind_autograd(nb::module_& m);
void bind_transforms(nb::module_& m);
void bind_optimize(nb::module_& m);
void bind_derivatives(nb::module_& m);
void bind_callbacks(nb::module_& m, nb::class_<Tensor>& tensor);
void bind_compile(nb::module_& m);
void bind_private_ops(nb::module_& m);
void bind_values(nb::module_& m);
void bind_networks(nb::module_& m);
void bind_nn(nb::module_& m);
void bind_optimizers(nb::module_& m);
void bind_printing(nb::module_& m);
void bind_schedules(nb::module_& m);
void bind_amp(nb::module_& m);
void bind_io(nb::module_& m);
void bind_calls(nb::module_& m);
void bind_subclasses(nb::module_& m, nb::class_<Tensor>& tensor);
// The default dtype of tensors of fractions. Guarded by the GIL.
DType& default_floating();
// Returns the slots of operators and subscripts; a zero ends the list.
PyType_Slot* tensor_slots();
extern PyType_Slot buffer_slots[2];

}  // namespace plugrad::python

namespace nanobind::detail {

// Keeps the given object unconverted.
template <class Like, class Text> struct keeping_caster {
  NB_TYPE_CASTER(Like, Text::value)
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    if (!Text::accepts(source)) return false;
    value.given = borrow(source);
    return true;
  }
};

struct device_text {
  static constexpr auto value = const_name("Device | str | None");
  static bool accepts(handle source) noexcept {
    return source.is_none() || PyUnicode_Check(source.ptr()) || nb_type_check_device(source);
  }
  static bool nb_type_check_device(handle source) noexcept { return nanobind::isinstance<plugrad::Device>(source); }
};
template <> struct type_caster<plugrad::python::DeviceLike> : keeping_caster<plugrad::python::DeviceLike, device_text> {};

struct dtype_text {
  static constexpr auto value = const_name("DType | str | type | typing.Any | None");
  static bool accepts(handle source) noexcept {
    return !PyFloat_Check(source.ptr()) && !PyLong_Check(source.ptr()) && !PyTuple_Check(source.ptr());
  }
};
template <> struct type_caster<plugrad::python::DTypeLike> : keeping_caster<plugrad::python::DTypeLike, dtype_text> {};

// A caster for results that are named tuples.
template <class Result> struct result_caster {
  using Value = Result;
  template <class T> using Cast = Result;
  static handle from_cpp(const Result& result, rv_policy, cleanup_list*) noexcept {
    return plugrad::python::guarded<PyObject*>(nullptr, [&] { return plugrad::python::new_result(result); });
  }
};
template <> struct type_caster<plugrad::ValuesIndices> : result_caster<plugrad::ValuesIndices> {
  static constexpr auto Name = const_name("ValuesIndices");
};
template <> struct type_caster<plugrad::MinMax> : result_caster<plugrad::MinMax> {
  static constexpr auto Name = const_name("MinMax");
};
template <> struct type_caster<plugrad::Quantized> : result_caster<plugrad::Quantized> {
  static constexpr auto Name = const_name("Quantized");
};

template <> struct type_caster<plugrad::python::ShapeLike> {
  NB_TYPE_CASTER(plugrad::python::ShapeLike, const_name("int | collections.abc.Sequence[int]"))
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept;
};

template <> struct type_caster<plugrad::python::NumbersLike> {
  NB_TYPE_CASTER(plugrad::python::NumbersLike, const_name("float | collections.abc.Sequence[float]"))
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept;
};

template <> struct type_caster<plugrad::python::NumberLike> {
  NB_TYPE_CASTER(plugrad::python::NumberLike, const_name("float"))
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    value.boolean = PyBool_Check(source.ptr());
    return plugrad::python::number_of(source.ptr(), value.value);
  }
};

template <> struct type_caster<plugrad::python::ReductionLike> {
  NB_TYPE_CASTER(plugrad::python::ReductionLike, const_name("str"))
  bool from_python(handle source, uint8_t flags, cleanup_list* cleanup) noexcept {
    make_caster<std::string> text;
    if (!text.from_python(source, flags, cleanup)) return false;
    value.name = text.operator std::string&();
    return true;
  }
};

}  // namespace nanobind::detail
