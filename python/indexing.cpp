// x[key] and x[key] = value: converts Python's keys to the core's keys.
#include <python/binding.hpp>

#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/advanced_indexing.hpp>

#include <algorithm>

namespace plugrad::python {
namespace {
using Key = std::vector<Index>;

[[noreturn]] void refuse(PyObject* item) {
  throw nb::type_error(("[index] " + type_name_of(item) +
                        " is no index: whole numbers, slices, None, ..., and lists, arrays or tensors of whole numbers or "
                        "bools are expected")
                           .c_str());
}

Index slice_of(PyObject* item) {
  Py_ssize_t start = 0, stop = 0, step = 0;
  if (PySlice_Unpack(item, &start, &stop, &step) < 0) throw nb::python_error();
  return Slice{start, stop, step};
}

Index number_in(PyObject* item) {
  const Py_ssize_t number = PyNumber_AsSsize_t(item, PyExc_IndexError);
  if (number == -1 && PyErr_Occurred()) throw nb::python_error();
  return static_cast<int64_t>(number);
}

// Converts a list. An empty list counts as whole numbers, as in NumPy.
Index listed(const nb::object& list, const Tensor& x) {
  const Tensor made = tensor_from(list, dtype_of_numbers(list), x.device());
  return made.count() ? made : cast(made, DType::i64);
}

Index item_of(PyObject* item, const Tensor& x) {
  if (item == Py_None) return newaxis;
  if (item == Py_Ellipsis) return ellipsis;
  if (PySlice_Check(item)) return slice_of(item);
  if (is_tensor(item)) return tensor_in(item);
  if (is_bool(item)) return PyObject_IsTrue(item) == 1;
  Number number = 0;
  if (number_of(item, number)) {
    if (!PyIndex_Check(item)) refuse(item);
    return number_in(item);
  }
  if (PyList_Check(item) || PyTuple_Check(item)) return listed(nb::borrow(item), x);
  if (holds_numbers(item)) return tensor_from(item, std::nullopt, x.device());
  if (PyIndex_Check(item)) return number_in(item);
  if (!PySequence_Check(item) || PyUnicode_Check(item) || PyBytes_Check(item) || PyByteArray_Check(item)) refuse(item);
  return listed(nb::list(nb::borrow(item)), x);
}

Key key_of(PyObject* key, const Tensor& x) {
  Key items;
  if (!PyTuple_Check(key)) {
    items.push_back(item_of(key, x));
    return items;
  }
  items.reserve(static_cast<size_t>(list_size(key)));
  for (Py_ssize_t i = 0; i < list_size(key); ++i) items.push_back(item_of(list_item(key, i), x));
  return items;
}

// Returns whether indexing by this key runs ops on elements: a key without tensors and bools only makes a view.
bool computes(const Key& key) {
  return std::ranges::any_of(key, [](const Index& each) {
    return std::holds_alternative<Tensor>(each.item()) || std::holds_alternative<bool>(each.item());
  });
}
}  // namespace

Tensor index_tensor(const Tensor& x, PyObject* key) {
  const Tensor whole = x;  // a key's __index__ may run Python code
  const Key items = key_of(key, whole);
  return computes(items) ? unlocked([&] { return index(whole, items); }) : index(whole, items);
}

namespace {
void put(const Tensor& x, PyObject* key, PyObject* value, bool accumulate) {
  Tensor whole = x;
  const Key items = key_of(key, whole);
  Number number = 0;
  if (number_of(value, number)) return unlocked([&] { index_put_(whole, items, number, accumulate); });
  const Tensor source = is_tensor(value) ? tensor_in(value) : tensor_from(value, whole.dtype(), whole.device());
  unlocked([&] { index_put_(whole, items, source, accumulate); });
}

Tensor with_put(const Tensor& x, const nb::object& key, const nb::object& value, bool accumulate) {
  const Tensor whole = x;
  const Key items = key_of(key.ptr(), whole);
  const Tensor source = is_tensor(value.ptr()) ? tensor_in(value.ptr()) : tensor_from(value, whole.dtype(), whole.device());
  return unlocked([&] { return index_put(whole, items, source, accumulate); });
}

nb::object put_in_place(nb::handle self, const nb::object& key, const nb::object& value, bool accumulate) {
  put(nb::cast<Tensor>(self), key.ptr(), value.ptr(), accumulate);
  return nb::borrow(self);
}

nb::object nonzero_of(const Tensor& x, bool as_tuple) {
  if (!as_tuple) return wrap(unlocked([x] { return nonzero(x); }));
  return nb::tuple(nb::cast(unlocked([x] { return where(x); })));
}
}  // namespace

void assign_index(const Tensor& x, PyObject* key, PyObject* value) { put(x, key, value, false); }

void bind_indexing(nb::module_& m, nb::class_<Tensor>& tensor) {
  constexpr const char* kDoc =
      "Returns a copy of x with values in place of x[indices]; accumulate adds values to x[indices] instead, once for each "
      "index that names an element. indices: a key, such as a tuple of tensors. Gradients flow to x and to values.";
  m.def("index_put", with_put, nb::arg("x"), nb::arg("indices").none(), nb::arg("values"), nb::arg("accumulate") = false,
        kDoc);
  constexpr const char* kNonzero = "With as_tuple, returns one tensor of positions for each axis, as where(x) does.";
  m.def("nonzero", nonzero_of, nb::arg("x"), nb::kw_only(), nb::arg("as_tuple"), kNonzero);
  tensor.def("nonzero", nonzero_of, nb::kw_only(), nb::arg("as_tuple"), kNonzero)
      .def("index_put", with_put, nb::arg("indices").none(), nb::arg("values"), nb::arg("accumulate") = false, kDoc)
      .def("index_put_", put_in_place, nb::arg("indices").none(), nb::arg("values"), nb::arg("accumulate") = false,
           "Writes x[indices] = values, or with accumulate adds values to x[indices], once for each index that names an "
           "element. Returns this tensor.");
}

}  // namespace plugrad::python
