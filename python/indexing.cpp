// x[key] as a view, for whole numbers, slices of any step, None and `...`.
#include <python/binding.hpp>

namespace plugrad::python {
namespace {

[[noreturn]] void refuse(PyObject* item) {
  const std::string hint = is_tensor(item) ? ": use where, gather or scatter_add" : "";
  throw nb::type_error(("[index] whole numbers, slices, None and ... are indices; " + std::string(Py_TYPE(item)->tp_name) +
                        " is not one" + hint)
                           .c_str());
}

bool is_number(PyObject* item) {
  return !PyBool_Check(item) && PyIndex_Check(item) && (!is_tensor(item) || !tensor_in(item).rank());
}

// How many axes of x the items of a key consume.
int axes_used(PyObject* const* items, Py_ssize_t count) {
  int used = 0, dots = 0;
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (items[i] == Py_Ellipsis)
      ++dots;
    else if (items[i] != Py_None)
      ++used;
  }
  if (dots > 1)
    throw Error(Code::index_error, "[index] '...' occurs " + std::to_string(dots) + " times; once at most expected");
  return used;
}

Tensor indexed(const Tensor& x, PyObject* const* items, Py_ssize_t count) {
  const int used = axes_used(items, count);
  if (used > x.rank())
    throw Error(Code::index_error, "[index] " + std::to_string(used) + " indices for a tensor of shape " + x.shape().text());
  Tensor view = x;
  int axis = 0;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* const item = items[i];
    if (item == Py_None) {
      view = unsqueeze(view, axis++);
    } else if (item == Py_Ellipsis) {
      axis += x.rank() - used;
    } else if (PySlice_Check(item)) {
      Py_ssize_t start = 0, stop = 0, step = 0;
      if (PySlice_Unpack(item, &start, &stop, &step) < 0) throw nb::python_error();
      view = slice(view, axis++, start, stop, step);
    } else if (is_number(item)) {
      const Py_ssize_t index = PyNumber_AsSsize_t(item, PyExc_IndexError);
      if (index == -1 && PyErr_Occurred()) throw nb::python_error();
      view = select(view, axis, index);
    } else {
      refuse(item);
    }
  }
  return view;
}
}  // namespace

namespace {
// The indices that count from the end, counted from the start. Those out of range stay, so that errors name them.
Tensor from_start(const Tensor& x, int axis, const Tensor& index) {
  if (index.dtype() != DType::i64 || axis < -x.rank() || axis >= x.rank()) return index;  // the core says why
  try {
    const NoGrad unrecorded;
    const Tensor shifted = add(index, x.size(axis));
    return where(lt(index, 0), where(lt(shifted, 0), index, shifted), index);
  } catch (const Error& error) {
    if (error.code() != Code::unsupported) throw;
    return index;  // a device that computes no integers
  }
}
}  // namespace

Tensor gather_from_end(const Tensor& x, int axis, const Tensor& index) {
  return gather(x, axis, from_start(x, axis, index));
}

Tensor scatter_add_from_end(const Tensor& x, int axis, const Tensor& index, const Tensor& source) {
  return scatter_add(x, axis, from_start(x, axis, index), source);
}

Tensor index_tensor(const Tensor& x, PyObject* key) {
  const Tensor whole = x;  // a key's __index__ may run Python code
  if (PyTuple_Check(key)) return indexed(whole, PySequence_Fast_ITEMS(key), PyTuple_GET_SIZE(key));
  return indexed(whole, &key, 1);
}

void assign_index(const Tensor& x, PyObject* key, PyObject* value) {
  Tensor whole = x, part;
  {
    const NoGrad unrecorded;
    part = index_tensor(x, key);
  }
  Number number = 0;
  if (number_of(value, number))
    return unlocked([&] { part.is_same(whole) ? whole.fill_(number) : assign(whole, part, number); });
  const Tensor source = is_tensor(value) ? tensor_in(value) : tensor_from(value, part.dtype(), part.device());
  unlocked([&] { part.is_same(whole) ? whole.copy_(source) : assign(whole, part, source); });
}

}  // namespace plugrad::python
