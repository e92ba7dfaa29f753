// Conversion of numbers, shapes, dtypes and names from Python.
#include <python/binding.hpp>

#include <plugrad/tensor/dtype_names.hpp>

#include <nanobind/stl/optional.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace plugrad::python {
namespace {

// Returns numbers.Real. NumPy's scalars are registered as its subclasses.
PyObject* real_type() {
  static PyObject* const type = [] {
    PyObject* module = PyImport_ImportModule("numbers");
    PyObject* found = module ? PyObject_GetAttrString(module, "Real") : nullptr;
    Py_XDECREF(module);
    if (!found) PyErr_Clear();
    return found;
  }();
  return type;
}

bool integer_of(PyObject* x, Number& number) noexcept {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(x, &overflow);
  if (!overflow) {
    number = Number(static_cast<int64_t>(value));
    return true;
  }
  const double real = PyLong_AsDouble(x);
  if (real == -1.0 && PyErr_Occurred()) {
    PyErr_Clear();
    return false;
  }
  number = Number(real);
  return true;
}

struct Name {
  std::string_view name;
  DType dtype;
};
// Returns all names of dtypes: the names of plugrad, NumPy and PyTorch, and Python's int.
const std::vector<Name>& dtype_names() {
  static const std::vector<Name> all = [] {
    std::vector<Name> names{{"bool_", DType::boolean}, {"int", DType::i64}};
    for (const DTypeNames& each : kDTypeNames) {
      names.push_back({dtype_name(each.dtype), each.dtype});
      if (each.dtype != DType::boolean) names.push_back({each.numpy, each.dtype});
      if (each.is_alias && each.dtype != DType::bf16) names.push_back({each.method, each.dtype});
    }
    return names;
  }();
  return all;
}

std::string known_dtypes() {
  std::string names;
  for (const DType each : kEveryDType) names += (names.empty() ? "" : ", ") + std::string(dtype_name(each));
  return "one of " + names;
}

// Returns the name of a dtype: a string itself, the name of a NumPy dtype or of a class, or the text of any other object
// without its module, such as "float32" for torch.float32.
std::string name_of(nb::handle given) {
  if (nb::isinstance<nb::str>(given)) return utf8_of(given);
  for (const char* attribute : {"__name__", "name"})
    if (nb::hasattr(given, attribute)) {
      const nb::object name = given.attr(attribute);
      if (nb::isinstance<nb::str>(name)) return utf8_of(name);
    }
  const std::string text = utf8_of(given);
  return text.substr(text.rfind('.') + 1);
}

// Returns whether an attribute of x is this text. Never leaves an error set.
bool has_text(nb::handle x, const char* attribute, const char* text) noexcept {
  PyObject* const value = PyObject_GetAttrString(x.ptr(), attribute);
  const bool has = value && PyUnicode_Check(value) && PyUnicode_CompareWithASCIIString(value, text) == 0;
  Py_XDECREF(value);
  PyErr_Clear();
  return has;
}
}  // namespace

bool is_bool(PyObject* x) noexcept {
  if (PyBool_Check(x)) return true;
  if (PyLong_Check(x) || PyFloat_Check(x)) return false;
  const nb::handle type = nb::handle(x).type();
  return has_text(type, "__module__", "numpy") &&
         (has_text(type, "__name__", "bool") || has_text(type, "__name__", "bool_"));
}

bool names_dtype(const std::string& name) {
  return std::ranges::any_of(dtype_names(), [&](const Name& each) { return each.name == name; });
}

namespace {
PyTypeObject* lifted_type = nullptr;  // plugrad/_lifted.py

// Reads an object of that type.
bool lifted_of(PyObject* x, Number& number) noexcept {
  PyObject *const value = PyObject_GetAttrString(x, "value"), *const source = PyObject_GetAttrString(x, "source");
  const bool known = value && source && number_of(value, number);
  if (known) number = Number::lifted(number, static_cast<uint32_t>(PyLong_AsUnsignedLong(source)));
  Py_XDECREF(value);
  Py_XDECREF(source);
  PyErr_Clear();
  return known;
}
}  // namespace

void set_lifted_type(nb::handle type) { lifted_type = reinterpret_cast<PyTypeObject*>(nb::borrow(type).release().ptr()); }

bool is_lifted(PyObject* x) noexcept { return lifted_type && PyType_IsSubtype(Py_TYPE(x), lifted_type); }

nb::object plain_number(PyObject* x) { return is_lifted(x) ? nb::handle(x).attr("read")() : nb::borrow(x); }

bool number_of(PyObject* x, Number& number) noexcept {
  if (PyFloat_Check(x)) {
    number = Number(float_of(x));
    return true;
  }
  if (PyLong_Check(x)) return integer_of(x, number);
  if (is_lifted(x)) return lifted_of(x, number);
  if (!is_tensor(x) && is_bool(x)) {
    number = Number(int64_t{PyObject_IsTrue(x) == 1});
    return true;
  }
  if (is_tensor(x) || !real_type() || PyObject_IsInstance(x, real_type()) != 1) {
    PyErr_Clear();
    return false;
  }
  PyObject* index = PyIndex_Check(x) ? PyNumber_Index(x) : PyNumber_Float(x);
  const bool known = index && (PyFloat_Check(index) ? (number = Number(float_of(index)), true) : integer_of(index, number));
  Py_XDECREF(index);
  PyErr_Clear();
  return known;
}

std::string path_of(const nb::object& path) {
  const nb::bytes bytes(nb::module_::import_("os").attr("fsencode")(path));
  const std::string all(bytes.c_str(), bytes.size());
  if (all.find('\0') != std::string::npos)  // the system would end the path at this character
    throw nb::value_error("[path] a path holds the character '\\0': files have no such names");
  return all;
}

std::string utf8_of(nb::handle text) {
  const nb::object bytes =
      nb::steal(PyUnicode_AsEncodedString(nb::object(nb::str(text)).ptr(), "utf-8", "backslashreplace"));
  if (!bytes.is_valid()) throw nb::python_error();
  return std::string(PyBytes_AsString(bytes.ptr()), static_cast<size_t>(PyBytes_Size(bytes.ptr())));
}

std::optional<DType> DTypeLike::get() const {
  if (!given.is_valid() || given.is_none()) return std::nullopt;
  if (nb::isinstance<DTypeObject>(given)) return nb::cast<DTypeObject>(given).value;
  const std::string name = name_of(given);
  for (const Name& each : dtype_names())
    if (each.name == name) return each.dtype;
  throw Error(Code::invalid, "[dtype] '" + name + "' is not a dtype of plugrad: " + known_dtypes() + " expected");
}

Reduction ReductionLike::get() const {
  if (name == "mean") return Reduction::mean;
  if (name == "batchmean") return Reduction::batchmean;
  if (name == "sum") return Reduction::sum;
  if (name == "none") return Reduction::none;
  throw Error(Code::invalid, "[reduction] '" + name + "' is unknown: none, mean or sum expected");
}

namespace {
const DTypeInfo& info(DTypeObject d) { return *dtype_info(static_cast<uint8_t>(d.value)); }

void bind_properties(nb::class_<DTypeObject>& dtype) {
  using D = DTypeObject;
  dtype.def_prop_ro(
           "name", [](D d) { return dtype_name(d.value); }, "The name: 'f32' or 'bool', for example.")
      .def_prop_ro(
          "itemsize", [](D d) { return item_size(d.value); }, "Bytes of an element.")
      .def_prop_ro(
          "is_floating_point", [](D d) { return is_floating(d.value); }, "True for a floating dtype.")
      .def_prop_ro(
          "is_complex", [](D d) { return is_complex(d.value); }, "True for a complex dtype.")
      .def_prop_ro(
          "is_signed", [](D d) { return d.value != DType::boolean && !info(d).is_unsigned(); },
          "True if the dtype has negative numbers.")
      .def_prop_ro(
          "_digits", [](D d) { return info(d).digits; }, "Bits of the significand, or of the largest integer.")
      .def_prop_ro("_exponent_bits", [](D d) { return info(d).exponent_bits; }, "Bits of the exponent; 0 if not floating.");
}
}  // namespace

DType& default_floating() {
  static DType dtype = DType::f32;
  return dtype;
}

namespace {
void bind_default_dtype(nb::module_& m) {
  m.def(
      "get_default_dtype", [] { return DTypeObject{default_floating()}; },
      "Returns the default dtype of tensors of fractions and of modules: f32 unless set_default_dtype changed it.");
  m.def(
      "set_default_dtype",
      [](const DTypeLike& given) {
        const DType dtype = given.get(DType::f32);
        if (!is_floating(dtype))
          throw Error(Code::invalid, std::string("[set_default_dtype] ") + dtype_name(dtype) +
                                         " holds no fractions: one of f64, f32, f16, bf16 expected");
        default_floating() = dtype;
      },
      nb::arg("d"),
      "Sets the default dtype of tensors of fractions and of modules. Floating results of ops on integers stay f32. Raises "
      "ValueError for a dtype that is not floating.");
}

// Returns for each dtype its name, NumPy's name, PyTorch's class of storages, its kind, and its number of digits in bits.
nb::list listed_names() {
  constexpr const char* kKinds[] = {"bool", "integer", "floating", "complex"};
  nb::list all;
  for (const DTypeNames& each : kDTypeNames) {
    const DTypeInfo& info = *dtype_info(static_cast<uint8_t>(each.dtype));
    const char* const kind = info.is_unsigned() ? "unsigned" : kKinds[static_cast<size_t>(info.kind)];
    all.append(nb::make_tuple(dtype_name(each.dtype), each.numpy, each.storage, kind, info.digits));
  }
  return all;
}
}  // namespace

void bind_dtypes(nb::module_& m) {
  bind_default_dtype(m);
  using D = DTypeObject;
  nb::class_<D> dtype(m, "DType", nb::is_final(),
                      "The type of a tensor's elements, such as f32 or bool. A DType equals its name: `t.dtype == 'f32'`.");
  bind_properties(dtype);
  dtype.def(
           "__init__", [](D* self, const DTypeLike& name) { new (self) D{name.get(DType::f32)}; }, nb::arg("name"))
      .def("__repr__",
           [](D d) { return std::string("plugrad.") + dtype_name(d.value) + (d.value == DType::boolean ? "_" : ""); })
      .def("__str__", [](D d) { return dtype_name(d.value); })
      .def("__hash__", [](D d) { return nb::hash(nb::str(dtype_name(d.value))); })
      .def(
          "__eq__",
          [](D d, nb::handle other) {
            if (nb::isinstance<D>(other)) return nb::cast<D>(other).value == d.value;
            if (!nb::isinstance<nb::str>(other)) return false;
            const std::string name = utf8_of(other);
            for (const Name& each : dtype_names())
              if (each.name == name) return each.dtype == d.value;
            return false;
          },
          nb::arg("other").none())
      .def("__reduce__", [](nb::handle self) { return nb::make_tuple(self.type(), nb::make_tuple(self.attr("name"))); });
  m.def(
      "promote_types",
      [](const DTypeLike& a, const DTypeLike& b) { return D{promote_types(a.get(DType::f32), b.get(DType::f32))}; },
      nb::arg("type1"), nb::arg("type2"), "Returns the dtype of an op on tensors of these two dtypes.");
  m.def("_dtype_names", listed_names);
  for (const Name& each : dtype_names())
    if (each.name != "bool" && each.name != "int" && each.name != "float")  // Python's types, which the stub refers to
      m.attr(each.name.data()) = nb::cast(D{each.dtype});
}

}  // namespace plugrad::python

bool nanobind::detail::type_caster<plugrad::python::ShapeLike>::from_python(handle source, uint8_t, cleanup_list*) noexcept {
  PyObject* const x = source.ptr();
  const auto add = [this](PyObject* each) {
    PyObject* index = PyIndex_Check(each) && !PyBool_Check(each) ? PyNumber_Index(each) : nullptr;
    const long long extent = index ? PyLong_AsLongLong(index) : -1;
    Py_XDECREF(index);
    if (!index || PyErr_Occurred()) {
      PyErr_Clear();
      return false;
    }
    value.extents.push_back(extent);
    return true;
  };
  value.extents.clear();
  if (source.is_none()) return true;
  if (PyIndex_Check(x) && !PySequence_Check(x)) return add(x);
  if (!PyTuple_Check(x) && !PyList_Check(x)) return PyIndex_Check(x) && add(x);
  const Py_ssize_t count = plugrad::python::list_size(x);
  for (Py_ssize_t i = 0; i < count; ++i)
    if (!add(plugrad::python::list_item(x, i))) return false;
  return true;
}

bool nanobind::detail::type_caster<plugrad::python::NumbersLike>::from_python(handle source, uint8_t flags,
                                                                              cleanup_list* cleanup) noexcept {
  value.numbers.clear();
  if (source.is_none()) return true;
  plugrad::Number number = 0;
  // nanobind tries all overloads without conversions first, so an overload for a single number has priority.
  const bool converts = flags & static_cast<uint8_t>(cast_flags::convert);
  if (converts && plugrad::python::number_of(source.ptr(), number)) {
    value.numbers.push_back(number.real());
    return true;
  }
  make_caster<std::vector<double>> listed;
  if (!listed.from_python(source, flags, cleanup)) return false;
  value.numbers = std::move(listed.value);
  return true;
}
