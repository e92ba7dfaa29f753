// The tensor's own methods; methods that are ops come from the core's headers (see generate.py).
#include <python/bound.hpp>

#include <plugrad/autograd/autograd.hpp>

#include <nanobind/stl/optional.h>

#include <complex>
#include <sstream>

namespace plugrad::python {
namespace {

// --- Shapes: a type of tuples that also equal lists.

PyTypeObject* shape_type = nullptr;

PyObject* compare_shapes(PyObject* a, PyObject* b, int op) {
  static const auto compare_tuples = slot_of<richcmpfunc>(&PyTuple_Type, Py_tp_richcompare);
  if (!PyList_Check(b)) return compare_tuples(a, b, op);
  PyObject* other = PyList_AsTuple(b);
  if (!other) return nullptr;
  PyObject* result = compare_tuples(a, other, op);
  Py_DECREF(other);
  return result;
}
Py_hash_t hash_shape(PyObject* x) {
  static const auto hash_tuple = slot_of<hashfunc>(&PyTuple_Type, Py_tp_hash);
  return hash_tuple(x);
}

PyObject* reduce_shape(PyObject* x, PyObject*) {
  PyObject* plain = PySequence_Tuple(PyList_Check(x) ? x : nb::list(nb::borrow(x)).ptr());
  return plain ? Py_BuildValue("(O(N))", reinterpret_cast<PyObject*>(&PyTuple_Type), plain) : nullptr;
}

void bind_shape(nb::module_& m) {
  static PyMethodDef methods[] = {{"__reduce__", reduce_shape, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
  static PyType_Slot slots[] = {{Py_tp_base, &PyTuple_Type},
                                {Py_tp_richcompare, reinterpret_cast<void*>(compare_shapes)},
                                {Py_tp_hash, reinterpret_cast<void*>(hash_shape)},
                                {Py_tp_methods, methods},
                                {Py_tp_doc, const_cast<char*>("Extents or strides: a tuple that also equals lists.")},
                                {0, nullptr}};
  static PyType_Spec spec{"plugrad._plugrad.Size", 0, 0, Py_TPFLAGS_DEFAULT, slots};
  PyObject* type = PyType_FromSpec(&spec);
  if (!type) throw nb::python_error();
  shape_type = reinterpret_cast<PyTypeObject*>(type);
  m.attr("Size") = nb::steal(type);
  m.attr("Size").attr("__module__") = m.attr("__name__");
}

// --- Text of tensors.

std::string text_of(const Tensor& x) {
  std::ostringstream out;
  const std::string indent(7, ' ');
  std::string elements;
  {
    std::ostringstream inner;
    inner << x;
    elements = inner.str();
  }
  for (size_t at = elements.find('\n'); at != std::string::npos; at = elements.find('\n', at + 1))
    if (at + 1 < elements.size() && elements[at + 1] != '\n') elements.insert(at + 1, indent);
  out << "Tensor(" << elements;
  if (!x.count()) out << ", shape=" << x.shape().text();
  if (x.dtype() != DType::f32) out << ", dtype=" << dtype_name(x.dtype());
  const std::string device = nb::str(nb::cast(x.device())).c_str();
  if (device != "cpu") out << ", device=" << device;
  if (x.requires_grad()) out << ", requires_grad=True";
  return out.str() + ")";
}

// --- The constructor and single methods.

void construct(Tensor* self, const nb::object& data, std::optional<ShapeLike> shape, const DeviceLike& device,
               const DTypeLike& dtype, std::optional<bool> requires_grad) {
  bool from_numbers = false;
  const std::optional<DType> wanted = dtype.get();
  Tensor made = tensor_from(data, wanted, device.get(), &from_numbers);
  if (shape) made = reshape(made, shape->get());
  if (requires_grad.value_or(false)) made.requires_grad_();
  else if (!requires_grad && from_numbers && is_inexact(made.dtype())) track_unasked(made);
  new (self) Tensor(std::move(made));
}

void run_backward(const Tensor& self, std::optional<Tensor> gradient, bool retain_graph, bool create_graph) {
  const Tensor root = self, seed = gradient.value_or(Tensor());
  if (create_graph) nb::module_::import_("plugrad._cycles").attr("note_graph")();
  unlocked([&] { root.backward(seed, {retain_graph, create_graph}); });
}

nb::object as_complex(const Tensor& x) {
  const auto number = unlocked([x] { return x.item<std::complex<double>>(); });
  return nb::steal(PyComplex_FromDoubles(number.real(), number.imag()));
}

nb::object only_element(const Tensor& x) {
  const Tensor t = x;
  if (is_complex(t.dtype())) return as_complex(t);
  if (is_floating(t.dtype())) return nb::float_(unlocked([&] { return t.item<double>(); }));
  if (is_integer(t.dtype())) return nb::int_(unlocked([&] { return t.item<int64_t>(); }));
  return nb::bool_(unlocked([&] { return t.item<bool>(); }));
}

// Copies data into x, outside any graph. `x.data -= 1` changes the memory of x and then copies it onto itself.
void set_data(Tensor& x, const Tensor& data) {
  if (data.shape() != x.shape() || data.dtype() != x.dtype())
    throw Error(Code::invalid, "[data] new data of " + std::string(dtype_name(data.dtype())) + " " + data.shape().text() +
                                   " for a tensor of " + dtype_name(x.dtype()) + " " + x.shape().text() +
                                   ": shape and dtype must be equal");
  unlocked([x, data]() mutable {
    const NoGrad unrecorded;
    x.copy_(data.detach());
  });
}

std::string formatted(const Tensor& x, const std::string& spec) {
  if (spec.empty() && x.rank()) return text_of(x);
  if (x.count() != 1)
    throw nb::type_error(("[format] a tensor of shape " + x.shape().text() + " is not one number, which '" + spec +
                          "' formats: format its elements")
                             .c_str());
  return nb::cast<std::string>(nb::module_::import_("builtins").attr("format")(only_element(x), spec));
}

Tensor flipped(const Tensor& x) {
  if (x.rank() > 2)
    throw Error(Code::invalid, "[t] a tensor of shape " + x.shape().text() +
                                   " has more than two axes: use .T for the last two, or transpose");
  return x.rank() < 2 ? x : transpose(x);
}

// Returns the module with the functions of the array API standard.
nb::object array_namespace(nb::handle, const nb::object& api_version) {
  return nb::module_::import_("plugrad.array_api").attr("_namespace")(api_version);
}

// Returns the shape of reshape(2, 3) and of reshape((2, 3)).
Shape shape_from(const nb::args& extents) {
  ShapeLike shape;
  if (extents.size() == 1) {
    if (!nb::try_cast(extents[0], shape)) throw nb::type_error("[shape] extents must be whole numbers");
  } else if (!nb::try_cast(nb::object(extents), shape)) {
    throw nb::type_error("[shape] extents must be whole numbers");
  }
  return shape.get();
}

template <Tensor (*kFunction)(const Tensor&, const Shape&)> Tensor with_shape(const Tensor& x, const nb::args& extents) {
  const Tensor source = x;
  const Shape shape = shape_from(extents);
  return unlocked([&] { return kFunction(source, shape); });
}

void bind_counts(nb::class_<Tensor>& tensor) {
  tensor.def("dim", &Tensor::rank, "Returns the number of axes.")
      .def("ndimension", &Tensor::rank, "Returns the number of axes.")
      .def(
          "stride", [](const Tensor& x) { return shape_tuple(x.strides()); }, nb::sig("def stride(self) -> Size"),
          "Returns the strides: the distance in elements between neighbours of each axis.")
      .def("nelement", &Tensor::count, "Returns the number of elements.")
      .def(
          "element_size", [](const Tensor& x) { return item_size(x.dtype()); }, "Returns the size of an element in bytes.")
      .def_prop_ro(
          "itemsize", [](const Tensor& x) { return item_size(x.dtype()); }, "The size of an element in bytes.")
      .def_prop_ro(
          "nbytes", [](const Tensor& x) { return static_cast<int64_t>(item_size(x.dtype())) * x.count(); },
          "The size of all elements in bytes.")
      .def(
          "is_floating_point", [](const Tensor& x) { return is_floating(x.dtype()); },
          "Returns whether the dtype is floating. Only a floating or complex tensor can have a gradient.")
      .def(
          "is_complex", [](const Tensor& x) { return is_complex(x.dtype()); }, "Returns whether the dtype is complex.")
      .def_prop_ro(
          "size",
          [](const Tensor& x) { return nb::module_::import_("plugrad._size").attr("Count")(shape_tuple(x.shape())); },
          nb::sig("def size(self) -> plugrad._size.Count"),
          "The number of elements. It can be called: `size()` returns the shape, and `size(dim)` returns an extent.")
      .def("numel", &Tensor::count, "Returns the number of elements.");
}

void bind_properties(nb::class_<Tensor>& tensor) {
  tensor
      .def_prop_ro(
          "shape", [](const Tensor& x) { return shape_tuple(x.shape()); }, nb::sig("def shape(self) -> Size"),
          "The extents, as a tuple that also equals lists.")
      .def_prop_ro(
          "strides", [](const Tensor& x) { return shape_tuple(x.strides()); }, nb::sig("def strides(self) -> Size"),
          "The distance in elements between neighbours of each axis.")
      .def_prop_ro(
          "dtype", [](const Tensor& x) { return DTypeObject{x.dtype()}; }, "The type of the elements.")
      .def_prop_ro("device", &Tensor::device, "The device that holds the elements.")
      .def_prop_ro("ndim", &Tensor::rank, "The number of axes.")
      .def_prop_ro(
          "T", [](const Tensor& x) { return x.rank() < 2 ? x : transpose(x); },
          "A view with the last two axes swapped; this tensor for fewer than two axes.")
      .def_prop_ro(
          "mT", [](const Tensor& x) { return transpose(x); },
          "A view with the last two axes swapped. Raises ValueError for fewer than two axes.")
      .def("t", flipped,
           "Returns a view of a matrix with its axes swapped; this tensor for fewer than two axes. Raises ValueError for "
           "more than two axes.")
      .def_prop_rw(
          "data", [](const Tensor& x) { return x.detach(); }, set_data,
          "A tensor over the same memory, outside the graph. Setting it copies a tensor of the same shape and dtype into "
          "the memory; no graph records the copy.");
}

void bind_tracking(nb::class_<Tensor>& tensor) {
  tensor
      .def_prop_rw(
          "requires_grad", &Tensor::requires_grad, [](Tensor& x, bool on) { x.requires_grad_(on); },
          "True for a leaf with a gradient and for a tensor computed from such a leaf. A leaf keeps its gradient if this "
          "is set to False. Setting True raises ValueError for dtypes that are not floating, and setting False for "
          "results of ops.")
      .def_prop_rw(
          "grad", [](const Tensor& x) { return wrap(x.grad()); },
          [](Tensor& x, std::optional<Tensor> grad) { x.set_grad(grad.value_or(Tensor())); },
          nb::for_getter(nb::sig("def grad(self) -> Tensor | None")),
          nb::for_setter(nb::sig("def grad(self, grad: Tensor | None) -> None")), nb::for_setter(nb::arg("grad").none()),
          "The gradient, or None if there is no gradient yet. Setting it needs a tensor of the same shape, dtype and "
          "device, or None.")
      .def_prop_ro("_is_parameter", is_parameter,
                   "True for a leaf whose gradient was requested, even if requires_grad_(False) has frozen the leaf.")
      .def_prop_ro(
          "_identity", [](const Tensor& x) { return reinterpret_cast<uintptr_t>(&x.impl()); },
          "A number that is equal for handles on the same tensor: see is_same.")
      .def_prop_ro("is_leaf", &Tensor::is_leaf, "True unless this tensor is the result of a recorded op.")
      .def_prop_ro(
          "op", [](const Tensor& x) { return x.op_name(); },
          "The name of the op that computed this tensor, as draw_dot shows it; '' for a leaf.");
}

void bind_gradients(nb::class_<Tensor>& tensor) {
  tensor
      .def("backward", run_backward, nb::arg("gradient") = nb::none(), nb::arg("retain_graph") = false,
           nb::arg("create_graph") = false,
           "Adds this tensor's gradient with respect to each leaf to the leaf's gradient.\n\n"
           "gradient: a tensor of this tensor's shape; 1 by default if this tensor has one element. Raises ValueError "
           "without a graph, and if an earlier call freed the graph (retain_graph keeps the graph).")
      .def(
          "requires_grad_",
          [](nb::handle self, bool on) {
            nb::cast<Tensor&>(self).requires_grad_(on);
            return nb::borrow(self);
          },
          nb::arg("on") = true, nb::sig("def requires_grad_(self, on: bool = True) -> Tensor"),
          "Makes this tensor a leaf with a gradient; False freezes the leaf: ops are no longer recorded for the leaf, but "
          "it keeps its gradient. True changes nothing for the result of a recorded op. Returns this tensor.")
      .def("retain_grad", &Tensor::retain_grad, "Makes backward keep the gradient of this result of an op.")
      .def(
          "zero_grad", [](Tensor& x) { x.clear_grad(); }, "Drops the gradient.")
      .def("detach", &Tensor::detach, "Returns a tensor over the same memory, outside the graph.");
}

void bind_views(nb::class_<Tensor>& tensor) {
  tensor
      .def("reshape", with_shape<reshape>,
           "Returns the elements in a new shape; a single extent may be -1. The result is a view if the strides allow it, "
           "else a copy.\n\n"
           "Raises ValueError with both shapes if the counts of elements differ.")
      .def("view", with_shape<reshape>, "The same as reshape.")
      .def("permute", with_shape<permute>, "Returns a view with the axes in another order.")
      .def("expand", with_shape<expand>,
           "Returns a view that repeats extents of 1 and adds axes in front; -1 keeps an extent. Raises ValueError if this "
           "tensor does not expand to the shape.");
}

void bind_standard(nb::class_<Tensor>& tensor) {
  tensor.def("__complex__", as_complex, nb::sig("def __complex__(self) -> complex"))
      .def("__array_namespace__", array_namespace, nb::kw_only(), nb::arg("api_version") = nb::none(),
           nb::sig("def __array_namespace__(self, *, api_version: str | None = None) -> types.ModuleType"),
           "Returns the module plugrad.array_api. Raises ValueError for a version of the standard that it does not "
           "implement.");
}

nb::object iterate(nb::handle self) {
  const Tensor& x = nb::cast<Tensor&>(self);
  if (!x.rank()) throw nb::type_error("[iter] a tensor of rank 0 has no rows to iterate over");
  nb::list parts;
  for (int64_t i = 0, n = x.size(0); i < n; ++i) parts.append(wrap(select(x, 0, i)));
  return nb::iter(parts);
}

// arange of the array API standard: without stop, the numbers go from 0 up to start.
Tensor arange_to_stop(const NumberLike& start, const std::optional<NumberLike>& stop, const NumberLike& step,
                      const DTypeLike& dtype, const DeviceLike& device, bool requires_grad) {
  const bool whole = !start.value.floating() && !step.value.floating() && !(stop && stop->value.floating());
  return with_gradient(arange(stop ? start.value : 0, stop ? stop->value : start.value, step.value,
                              dtype.get(whole ? DType::i64 : default_floating()), device.get()),
                       requires_grad);
}

// Binds arange(end). In the core's functions only the last parameters are optional, so they have no such overload.
void bind_arange(nb::module_& m) {
  m.def(
      "arange",
      [](const NumberLike& end, const DTypeLike& dtype, const DeviceLike& device, bool requires_grad) {
        const DType type = dtype.get(end.value.floating() ? default_floating() : DType::i64);
        return with_gradient(arange(0, end.value, 1, type, device.get()), requires_grad);
      },
      nb::arg("end"), nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(), nb::kw_only(),
      nb::arg("requires_grad") = false);
  m.def("arange", arange_to_stop, nb::arg("start"), nb::arg("stop").none() = nb::none(), nb::arg("step") = 1, nb::kw_only(),
        nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(), nb::arg("requires_grad") = false);
}

void bind_inference(nb::module_& m) {
  m.def(
      "_dtype_of_numbers",
      [](nb::handle data) -> nb::object {
        const std::optional<DType> dtype = dtype_of_numbers(data);
        return dtype ? nb::cast(DTypeObject{*dtype}) : nb::none();
      },
      nb::arg("data").none());
}

}  // namespace

nb::object shape_tuple(const Shape& shape) {
  static const auto allocate = slot_of<allocfunc>(shape_type, Py_tp_alloc);
  PyObject* made = allocate(shape_type, static_cast<Py_ssize_t>(shape.size()));
  if (!made) throw nb::python_error();
  for (size_t i = 0; i < shape.size(); ++i) set_item(made, static_cast<Py_ssize_t>(i), PyLong_FromLongLong(shape[i]));
  return nb::steal(made);
}

namespace {
void bind_contents(nb::class_<Tensor>& tensor) {
  tensor.def("__repr__", text_of)
      .def("__format__", formatted, nb::arg("spec"),
           "Returns the only element as a number in this format; without a format, the text of a tensor of rank 1 or more.")
      .def(
          "__copy__", [](nb::handle self) { return nb::borrow(self); }, nb::sig("def __copy__(self) -> Tensor"),
          "Returns this tensor, because a shallow copy shares memory and gradient. copy.deepcopy and clone() copy the "
          "elements.")
      .def("tolist", to_list, nb::sig("def tolist(self) -> typing.Any"),
           "Returns the elements as nested lists of numbers; a single number for rank 0. Waits for the device.")
      .def("item", only_element, nb::sig("def item(self) -> int | float | complex | bool"),
           "Returns the only element as a number. Raises ValueError unless there is exactly one. Waits for the device.")
      .def("is_contiguous", &Tensor::is_contiguous, "Returns whether the elements are row-major in memory, without gaps.")
      .def("is_same", &Tensor::is_same, nb::arg("other"), "Returns whether both objects are handles on the same tensor.")
      .def(
          "__reversed__", [](const Tensor& x) { return x.rank() ? flip(x, {0}) : x; },
          "Returns a view with the rows in reverse order; this tensor for rank 0.")
      .def("__iter__", iterate, nb::sig("def __iter__(self) -> collections.abc.Iterator[Tensor]"));
}
}  // namespace

nb::class_<Tensor> bind_tensor(nb::module_& m) {
  bind_shape(m);
  bind_arange(m);
  bind_inference(m);
  nb::class_<Tensor> tensor(
      m, "Tensor", nb::is_weak_referenceable(), nb::type_slots(tensor_slots()),
      "An array with one dtype on one device, and with a gradient if requested.\n\n"
      "data: a number, nested lists or tuples of numbers, or an array (buffer protocol, DLPack), which is copied.\n"
      "shape: a new shape for the same elements. device: a Device, its name, or None for the default device.\n"
      "dtype: by default, the default dtype for numbers, bool for bools, and an array's own dtype.\n"
      "requires_grad: by default True for floating numbers and lists of floating numbers, as in micrograd, and False for\n"
      "arrays. A module takes a tensor as a parameter only if the tensor was made with requires_grad=True or by\n"
      "nn.Parameter; this default is not enough. plugrad.tensor requires gradients only with requires_grad=True.\n\n"
      "Raises ValueError for lists without a common shape, for a shape that does not fit, for fractions in integers, and\n"
      "for whole numbers that f32 does not hold unless dtype is given.");
  tensor_type = reinterpret_cast<PyTypeObject*>(tensor.ptr());
  tensor.def("__init__", construct, nb::arg("data"), nb::arg("shape") = nb::none(), nb::arg("device") = nb::none(),
             nb::arg("dtype") = nb::none(), nb::arg("requires_grad") = nb::none());
  bind_properties(tensor);
  bind_counts(tensor);
  bind_parts(tensor);
  bind_tracking(tensor);
  bind_gradients(tensor);
  bind_movers(tensor);
  bind_indexing(m, tensor);
  bind_in_place(tensor);
  bind_contents(tensor);
  bind_views(tensor);
  bind_standard(tensor);
  return tensor;
}

}  // namespace plugrad::python
