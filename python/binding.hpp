// What the parts of the module share: parameters as Python people write them, errors, and the global interpreter lock (GIL).
#pragma once
#include <plugrad/plugrad.hpp>

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

// Sets the Python error that stands for the exception in flight: ValueError for what does not fit, IndexError, MemoryError, OSError,
// NotImplementedError for what a device cannot do, else RuntimeError.
void set_error(const std::exception_ptr& error) noexcept;

// Runs what a slot of a type does; an exception becomes Python's, and the slot answers `failed`.
template <class Result, class Body> Result guarded(Result failed, Body&& body) noexcept {
  try {
    return body();
  } catch (...) {
    set_error(std::current_exception());
    return failed;
  }
}

// --- The GIL.

// Below so many elements an op takes less time than another thread needs to take the lock.
constexpr int64_t kLong = 8192;

inline bool is_long(const Tensor& x) { return x.defined() && x.count() >= kLong; }
inline bool is_long(const std::vector<Tensor>&) { return true; }
// A shape of a factory, or a list of dims: it may hold -1, and more than there is memory for.
inline bool is_long(const Shape& shape) {
  double count = 1;
  for (const int64_t extent : shape) count *= double(extent);
  return count >= double(kLong);
}
template <class T> bool is_long(const T&) { return false; }

// The lock is let go while it lives. A thread that wants it back while the interpreter ends gets pthread_exit from Python, which must
// not unwind through functions that throw nothing: it waits for the end of the process instead.
class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  ~Unlocked() {
    try {
      PyEval_RestoreThread(state_);
    } catch (...) {  // nothing else comes out of it
      for (;;) pause();
    }
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

// Calls f without the lock. f owns what it uses: another thread may drop the objects that it came from.
template <class F> auto unlocked(F f) {
  const Unlocked released;
  return f();
}

// --- Parameters. What conversion may throw is done in the body of a function, where Python sees it; casters only keep it.

// A Device, a name, or None for the default one.
struct DeviceLike {
  nb::object given;
  Device get() const;
};
// The device that a name means. Throws RuntimeError with the reason where there is none.
Device named_device(const std::string& name);
// Looks for plugins in directories that other packages announce, once, before the first device is asked for.
void search_entry_points();

// A DType as an object of Python's: nanobind would make an enumeration of the bare one.
struct DTypeObject {
  DType value;
};

// A DType or its name ("f32", "float32"), NumPy's and PyTorch's dtypes, Python's int, float, bool; None where a default is known.
struct DTypeLike {
  nb::object given;
  std::optional<DType> get() const;
  DType get(DType otherwise) const { return get().value_or(otherwise); }
};

// A whole number or a sequence of them.
struct ShapeLike {
  std::vector<int64_t> extents;
  Shape get() const { return Shape(extents); }
};

struct NumberLike {
  Number value{0};
};
// Whether x is a number and no array: int, float, bool, NumPy's scalars. Never leaves an error set.
bool number_of(PyObject* x, Number& number) noexcept;

// "none", "mean" or "sum".
struct ReductionLike {
  std::string name;
  Reduction get() const;
};

// A path as Python people give it: str, bytes or os.PathLike.
std::string path_of(const nb::object& path);

// --- Tensors.

// The Python type, known once bound.
extern PyTypeObject* tensor_type;
inline bool is_tensor(PyObject* x) { return Py_TYPE(x) == tensor_type; }
inline Tensor& tensor_in(PyObject* x) { return *nb::inst_ptr<Tensor>(x); }
// A new reference to a new object.
PyObject* new_tensor(Tensor&& tensor);
inline nb::object wrap(Tensor tensor) { return tensor.defined() ? nb::steal(new_tensor(std::move(tensor))) : nb::none(); }

// Extents as a tuple that equals lists, too.
nb::object shape_tuple(const Shape& shape);

// A tensor of what Python holds: numbers, nested sequences, arrays by the buffer protocol or DLPack, tensors. Without a dtype,
// numbers are f32 and arrays keep theirs. from_numbers, if given, tells whether it was built from numbers.
Tensor tensor_from(nb::handle data, std::optional<DType> dtype, Device device, bool* from_numbers = nullptr);
nb::object to_list(const Tensor& x);

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
void bind_interchange(nb::module_& m, nb::class_<Tensor>& tensor);
void bind_autograd(nb::module_& m);
void bind_values(nb::module_& m);
void bind_networks(nb::module_& m);
void bind_nn(nb::module_& m);
void bind_optimizers(nb::module_& m);
void bind_io(nb::module_& m);
// The slots of operators and subscripts, ended by a zero.
PyType_Slot* tensor_slots();
extern PyType_Slot buffer_slots[2];

}  // namespace plugrad::python

namespace nanobind::detail {

// What keeps the object as it came.
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

template <> struct type_caster<plugrad::python::ShapeLike> {
  NB_TYPE_CASTER(plugrad::python::ShapeLike, const_name("int | collections.abc.Sequence[int]"))
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept;
};

template <> struct type_caster<plugrad::python::NumberLike> {
  NB_TYPE_CASTER(plugrad::python::NumberLike, const_name("float"))
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
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
