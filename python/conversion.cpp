// Converts Python's numbers, lists and arrays to tensors, and tensors to lists.
#include <python/binding.hpp>

#include <plugrad/tensor/dlpack.hpp>
#include <plugrad/tensor/dtype_names.hpp>

#include <algorithm>
#include <complex>
#include <cstring>
#include <limits>

namespace plugrad::python {
namespace {

[[noreturn]] void fail(const std::string& why) { throw Error(Code::invalid, "[tensor] " + why); }

// The type in which the host stores an element. A bool is a byte, but its type must differ from the type of u8.
enum class Truth : uint8_t {};
template <class T> using Host = std::conditional_t<std::is_same_v<T, bool>, Truth, T>;

bool is_list(PyObject* x) { return PyList_Check(x) || PyTuple_Check(x); }

std::string extents_text(const std::vector<int64_t>& extents) {
  std::string text = "(";
  for (size_t i = 0; i < extents.size(); ++i) text += (i ? ", " : "") + std::to_string(extents[i]);
  return text + (extents.size() == 1 ? ",)" : ")");
}

// --- Nested sequences of numbers.

// Returns the shape by the first element of each list. Reader checks all other elements.
std::vector<int64_t> shape_by_first(PyObject* data, PyObject** leaf) {
  std::vector<int64_t> extents;
  *leaf = nullptr;
  while (is_list(data)) {
    if (extents.size() == PLUGRAD_MAX_RANK)
      fail("lists are nested deeper than " + std::to_string(PLUGRAD_MAX_RANK) + ", the highest rank of a tensor");
    extents.push_back(list_size(data));
    if (!extents.back()) return extents;
    data = list_item(data, 0);
  }
  *leaf = data;
  return extents;
}

bool is_complex_object(PyObject* x) { return PyComplex_Check(x) || (is_tensor(x) && is_complex(tensor_in(x).dtype())); }
struct HoldsComplex {};  // a complex number among the leaves
template <class T> constexpr bool is_complex_number = false;
template <class T> constexpr bool is_complex_number<std::complex<T>> = true;

// Reads the leaves in row-major order into elements of T.
template <class T> class Reader {
 public:
  // exact: a whole number that T cannot hold is an error.
  Reader(const std::vector<int64_t>& extents, bool exact) : extents_(extents), exact_(exact) {
    size_t count = 1;
    for (const int64_t extent : extents) count *= static_cast<size_t>(extent);
    elements_.resize(count);
    next_ = elements_.data();
  }
  void read(PyObject* data, size_t depth) {
    if (depth == extents_.size()) {
      *next_++ = leaf(data);
      return;
    }
    if (!is_list(data) || list_size(data) != extents_[depth]) ragged(data, depth);
    const Py_ssize_t count = static_cast<Py_ssize_t>(extents_[depth]);
    // The size is read again each time: reading a leaf may run Python code, which may change the list.
    if (depth + 1 < extents_.size()) {
      for (Py_ssize_t i = 0; i < count; ++i) read(item(data, i, depth), depth + 1);
      return;
    }
    for (Py_ssize_t i = 0; i < count; ++i) *next_++ = leaf(item(data, i, depth));
  }
  const std::vector<T>& elements() const { return elements_; }

 private:
  PyObject* item(PyObject* data, Py_ssize_t i, size_t depth) {
    if (i >= list_size(data)) [[unlikely]]
      ragged(data, depth);
    return list_item(data, i);
  }
  [[noreturn]] void ragged(PyObject* data, size_t depth) {
    const std::string came = is_list(data) ? "a list of " + std::to_string(list_size(data)) : type_name_of(data);
    fail("the lists have no common shape: by the first elements it is " + extents_text(extents_) + ", but at depth " +
         std::to_string(depth) + " there is " + came + " where a list of " + std::to_string(extents_[depth]) +
         " was expected");
  }
  T leaf(PyObject* x) const {
    if constexpr (std::is_floating_point_v<T>) {
      if (PyFloat_CheckExact(x)) [[likely]]
        return static_cast<T>(float_of(x));
    }
    if (is_lifted(x)) return leaf(plain_number(x).ptr());
    if constexpr (is_complex_number<T>) return complex_leaf(x);
    else return real_leaf(x);
  }
  T complex_leaf(PyObject* x) const {
    if (is_tensor(x)) return static_cast<T>(tensor_in(x).item<std::complex<double>>());
    if (is_list(x)) fail("a list stands where a number was expected: the lists have no common shape");
    const double real = PyComplex_RealAsDouble(x), imaginary = PyComplex_ImagAsDouble(x);
    if (PyErr_Occurred()) throw nb::python_error();
    return static_cast<T>(std::complex<double>(real, imaginary));
  }
  T real_leaf(PyObject* x) const {
    if (is_complex_object(x)) throw HoldsComplex();
    Number number = 0;
    if (is_tensor(x)) number = tensor_in(x).item<double>();
    else if (!number_of(x, number)) {
      if (is_list(x)) fail("a list stands where a number was expected: the lists have no common shape");
      throw nb::type_error(("[tensor] " + type_name_of(x) + " is not a number").c_str());
    }
    if constexpr (std::is_same_v<T, Truth>) return static_cast<Truth>(number.real() != 0);
    else if constexpr (std::is_integral_v<T>) {
      if (number.floating() && number.real() != static_cast<double>(number.integer()))
        fail(std::to_string(number.real()) + " is not a whole number; a tensor of integers needs one");
      if (!std::in_range<T>(number.integer()))
        fail(std::to_string(number.integer()) + " is out of the range of " + dtype_name(dtype_of_v<T>));
      return static_cast<T>(number.integer());
    } else {
      const T value = static_cast<T>(number.real());
      if (exact_ && PyIndex_Check(x) && static_cast<double>(value) != number.real())
        fail("f32 does not hold " + std::string(nb::str(nb::handle(x)).c_str()) +
             " exactly: give a dtype, such as i64, f64, or f32 to round");
      return value;
    }
  }

  const std::vector<int64_t>& extents_;
  bool exact_;
  std::vector<T> elements_;
  T* next_;
};

template <class T>
Tensor read_as(PyObject* data, const std::vector<int64_t>& extents, DType dtype, bool exact, Device device) {
  Reader<T> reader(extents, exact);
  reader.read(data, 0);
  const Shape shape(extents);
  return unlocked(
      [&] { return constant_from_host(reader.elements().data(), reader.elements().size(), dtype, shape, device); });
}

enum class Kind { boolean, integer, floating, complex };

// Returns the kind that can represent all numbers in nested lists.
Kind kind_of(PyObject* data) {
  if (!is_list(data)) {
    if (is_complex_object(data)) return Kind::complex;
    if (is_tensor(data)) return is_floating(tensor_in(data).dtype()) ? Kind::floating : Kind::integer;
    const nb::object number = plain_number(data);
    return is_bool(number.ptr()) ? Kind::boolean : PyIndex_Check(number.ptr()) ? Kind::integer : Kind::floating;
  }
  Kind kind = Kind::boolean;
  for (Py_ssize_t i = 0; i < list_size(data) && kind != Kind::complex; ++i)
    kind = std::max(kind, kind_of(list_item(data, i)));
  return kind;
}

// Returns whether the first element of nested lists is a tensor or an array of rank 1 or more, and so not a number.
bool holds_arrays(PyObject* data) {
  if (!is_list(data)) return false;
  PyObject* leaf = nullptr;
  (void)shape_by_first(data, &leaf);
  if (!leaf || is_list(leaf)) return false;
  if (is_tensor(leaf)) return tensor_in(leaf).rank() > 0;
  return holds_numbers(leaf) && nb::hasattr(leaf, "ndim") && nb::cast<int64_t>(nb::handle(leaf).attr("ndim")) > 0;
}
}  // namespace

std::optional<DType> dtype_of_numbers(nb::handle data) {
  if (is_list(data.ptr()) ? holds_arrays(data.ptr()) : holds_numbers(data.ptr()) || !PyIndex_Check(data.ptr()))
    return std::nullopt;
  if (is_tensor(data.ptr())) return std::nullopt;
  return kind_of(data.ptr()) == Kind::integer ? std::optional(DType::i64) : std::nullopt;
}

namespace {
Tensor from_nested(PyObject* data, std::optional<DType> wanted, Device device) {
  PyObject* leaf = nullptr;
  const std::vector<int64_t> extents = shape_by_first(data, &leaf);
  const bool bools = !wanted && leaf && is_bool(leaf) && kind_of(data) == Kind::boolean;
  const DType dtype = wanted.value_or(bools ? DType::boolean : default_floating());
  if (dtype == DType::c64) return read_as<std::complex<float>>(data, extents, dtype, false, device);
  if (dtype == DType::c128) return read_as<std::complex<double>>(data, extents, dtype, false, device);
  Tensor made;
  try {
    with_element_type(static_cast<uint8_t>(dtype),
                      [&]<class T>(T) { made = read_as<Host<T>>(data, extents, dtype, !wanted, device); });
  } catch (const HoldsComplex&) {
    if (wanted) fail(std::string("a complex number stands among numbers of ") + dtype_name(dtype) + ": give c64 or c128");
    return from_nested(data, complex_of(dtype), device);
  }
  return made;
}

// --- Arrays, by the buffer protocol.

struct Buffer {
  explicit Buffer(PyObject* x) {
    if (PyObject_GetBuffer(x, &view, PyBUF_FULL_RO) < 0) throw nb::python_error();
  }
  ~Buffer() { PyBuffer_Release(&view); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  Py_buffer view;
};

template <class From, class To> std::vector<char> converted(const std::vector<char>& raw) {
  std::vector<char> out(raw.size() / sizeof(From) * sizeof(To));
  for (size_t i = 0; i * sizeof(From) < raw.size(); ++i) {
    From from;
    std::memcpy(&from, raw.data() + i * sizeof(From), sizeof from);
    const To to = static_cast<To>(from);
    std::memcpy(out.data() + i * sizeof(To), &to, sizeof to);
  }
  return out;
}
std::vector<char> from_unsigned(std::vector<char> raw) {
  for (size_t i = 0; i < raw.size(); i += sizeof(uint64_t)) {
    uint64_t value;
    std::memcpy(&value, raw.data() + i, sizeof value);
    if (!std::in_range<int64_t>(value))
      fail(std::to_string(value) + " is out of the range of i64: convert the array to floats first");
  }
  return raw;
}

// Returns the dtype for elements in a format of Python's struct module, and the elements. The array gives the size of a
// long.
std::pair<DType, std::vector<char>> elements_of(const char* format, Py_ssize_t size, std::vector<char> raw) {
  const char* code = format ? format : "B";
  if (*code == '@' || *code == '=' || *code == '<') ++code;
  for (const DTypeNames& each : kDTypeNames)
    if (is_complex(each.dtype) && std::strcmp(each.format, code) == 0) return {each.dtype, std::move(raw)};
  const char given = code[0] && !code[1] ? *code : '\0';
  const char known = given == 'l' ? (size == 4 ? 'i' : 'q') : given == 'L' ? (size == 4 ? 'I' : 'Q') : given;
  for (const DTypeNames& each : kDTypeNames)
    if (each.format && *each.format == known) return {each.dtype, std::move(raw)};
  switch (known) {
    case 'n': return {DType::i64, std::move(raw)};
    case 'Q':
    case 'N': return {DType::i64, from_unsigned(std::move(raw))};
    case 'I': return {DType::i64, converted<uint32_t, int64_t>(raw)};
    case 'H': return {DType::i64, converted<uint16_t, int64_t>(raw)};
    case 'c': return {DType::u8, std::move(raw)};
    default:
      fail("elements have the format '" + std::string(format ? format : "B") + "'; floats, whole numbers or bools expected");
  }
}

Tensor from_buffer(PyObject* data, Device device) {
  Buffer buffer(data);
  const Py_buffer& view = buffer.view;
  const Shape shape(std::vector<int64_t>(view.shape, view.shape + view.ndim));
  std::vector<char> raw(static_cast<size_t>(view.len));
  if (PyBuffer_ToContiguous(raw.data(), const_cast<Py_buffer*>(&view), view.len, 'C') < 0) throw nb::python_error();
  const auto [dtype, elements] = elements_of(view.format, view.itemsize, std::move(raw));
  const size_t count = static_cast<size_t>(shape.count());
  return unlocked([&] { return Tensor::from_host(elements.data(), count, dtype, shape, device); });
}

// Refuses fractions for integers, in arrays as in lists.
void require_whole(const Tensor& x, const Tensor& whole) {
  if (!x.count() || !sum(ne(cast(whole, x.dtype()), x)).item<int64_t>()) return;
  fail(std::string("an element of this array of ") + dtype_name(x.dtype()) + " is not a whole number of " +
       dtype_name(whole.dtype()) + ": round it first, or drop the fractions by cast()");
}

Tensor fitted(const Tensor& x, std::optional<DType> dtype, Device device) {
  return unlocked([x, dtype, device] {
    const NoGrad unrecorded;
    const Tensor there = to(x.detach(), device);
    if (!dtype) return there;
    const Tensor fits = cast(there, *dtype);
    if (is_floating(x.dtype()) && is_integer(*dtype)) require_whole(there, fits);
    return fits;
  });
}

// Imports the array by DLPack and copies it: the tensor shares no memory with the array's owner.
Tensor from_dlpack_copy(nb::handle data, std::optional<DType> dtype, Device device) {
  nb::object imported;
  try {
    imported = nb::module_::import_("plugrad").attr("from_dlpack")(data);
  } catch (nb::python_error& error) {  // from_buffer widens the dtypes that only NumPy has
    if (!error.matches(PyExc_ValueError) || !nb::hasattr(data, "__array__")) throw;
    return fitted(from_buffer(data.attr("__array__")().ptr(), device), dtype, device);
  }
  const Tensor shared = nb::cast<Tensor>(imported);
  const Tensor own = unlocked([shared] { return clone(shared.detach()); });
  return fitted(own, dtype, device);
}

// Returns the rows of a list as one tensor, outside the graph.
Tensor stacked(nb::handle rows, Device device) {
  std::vector<Tensor> all;
  for (const nb::handle each : rows) all.push_back(tensor_from(each, std::nullopt, device));
  const NoGrad unrecorded;
  return unlocked([&] { return stack(all, 0); });
}
}  // namespace

Tensor tensor_from(nb::handle data, std::optional<DType> dtype, Device device, bool* from_numbers) {
  PyObject* const x = data.ptr();
  bool numbers = false;
  if (!from_numbers) from_numbers = &numbers;
  *from_numbers = false;
  if (is_tensor(x)) {
    const Tensor source = tensor_in(x);
    return fitted(unlocked([source] { return clone(source.detach()); }), dtype, device);
  }
  Number number = 0;
  if (holds_arrays(x)) return fitted(stacked(data, device), dtype, device);
  if (is_list(x)) {
    *from_numbers = true;
    return from_nested(x, dtype, device);
  }
  if (PyObject_CheckBuffer(x)) return fitted(from_buffer(x, device), dtype, device);
  if (is_complex_object(x) || number_of(x, number)) {
    *from_numbers = true;
    return from_nested(x, dtype, device);
  }
  if (nb::hasattr(data, "__dlpack__")) return from_dlpack_copy(data, dtype, device);
  if (nb::hasattr(data, "__array__")) return tensor_from(data.attr("__array__")(), dtype, device, from_numbers);
  if (nb::hasattr(data, "tolist")) return tensor_from(data.attr("tolist")(), dtype, device, from_numbers);
  if (PySequence_Check(x) || PyIter_Check(x) || nb::hasattr(data, "__iter__")) {
    *from_numbers = true;
    const nb::list listed(nb::borrow(data));
    return from_nested(listed.ptr(), dtype, device);
  }
  throw nb::type_error(("[tensor] numbers, nested lists or arrays expected, not " + type_name_of(x)).c_str());
}

bool holds_numbers(PyObject* x) {
  if (is_list(x)) return true;
  if (is_lifted(x)) return false;
  if (PyComplex_Check(x)) return true;
  if (PyUnicode_Check(x) || PyBytes_Check(x) || PyByteArray_Check(x) || PyType_Check(x)) return false;
  return PyObject_CheckBuffer(x) || nb::hasattr(x, "__dlpack__") || nb::hasattr(x, "__array__");
}

Tensor tensor_beside(PyObject* x, const Tensor& other) {
  std::optional<DType> dtype;
  if (is_list(x)) {
    const Kind kind = kind_of(x);
    if (kind == Kind::complex) dtype = complex_of(other.dtype());
    else if (is_inexact(other.dtype()) || (is_integer(other.dtype()) && kind != Kind::floating)) dtype = other.dtype();
    else if (kind != Kind::floating) dtype = kind == Kind::boolean ? DType::boolean : DType::i64;
  }
  const Tensor made = tensor_from(x, dtype, other.device());
  if (made.rank()) return made;
  // An array of rank 0 counts as a number.
  if (is_complex(made.dtype())) return cast(made, complex_of(other.dtype()));
  const bool holds = is_inexact(other.dtype()) || (is_integer(other.dtype()) && !is_floating(made.dtype()));
  return holds ? cast(made, other.dtype()) : made;
}

// --- To lists.

namespace {
template <class T> PyObject* number_object(T x) {
  if constexpr (std::is_same_v<T, Truth>) return PyBool_FromLong(static_cast<long>(x));
  else if constexpr (is_complex_number<T>) return PyComplex_FromDoubles(x.real(), x.imag());
  else if constexpr (std::is_integral_v<T>) return PyLong_FromLongLong(x);
  else return PyFloat_FromDouble(x);
}

template <class T> PyObject* nested(const T*& next, const Shape& shape, size_t axis) {
  if (axis == shape.size()) return number_object(*next++);
  nb::object list = nb::steal(PyList_New(static_cast<Py_ssize_t>(shape[axis])));
  if (!list.is_valid()) throw nb::python_error();
  for (Py_ssize_t i = 0; i < static_cast<Py_ssize_t>(shape[axis]); ++i) {
    PyObject* each = nested(next, shape, axis + 1);
    if (!each) throw nb::python_error();
    set_item(list.ptr(), i, each);
  }
  return list.release().ptr();
}

template <class T> nb::object listed(const Tensor& x) {
  const std::vector<T> elements = unlocked([x] {
    std::vector<T> all(static_cast<size_t>(x.count()));
    x.copy_to_host(all.data());
    return all;
  });
  const T* next = elements.data();
  return nb::steal(nested(next, x.shape(), 0));
}
}  // namespace

nb::object to_list(const Tensor& x) {
  if (is_complex(x.dtype()))
    return x.dtype() == DType::c64 ? listed<std::complex<float>>(x) : listed<std::complex<double>>(x);
  nb::object list;
  with_element_type(static_cast<uint8_t>(x.dtype()), [&]<class T>(T) { list = listed<Host<T>>(x); });
  return list;
}

}  // namespace plugrad::python
