#include <python/value.hpp>

#include <plugrad/autograd/draw.hpp>

#include <charconv>
#include <string>

namespace plugrad::python {

PyTypeObject* value_type = nullptr;

Scalar::~Scalar() {
  if (self && value.face() == self) value.set_face(nullptr);
}

PyObject* new_value(Value&& value) {
  if (auto* known = static_cast<PyObject*>(value.face())) {
    Py_INCREF(known);
    return known;
  }
  nb::object made = nb::inst_alloc(nb::handle(reinterpret_cast<PyObject*>(value_type)));
  auto* scalar = new (nb::inst_ptr<Scalar>(made)) Scalar(std::move(value));
  nb::inst_mark_ready(made);
  scalar->self = made.ptr();
  scalar->value.set_face(made.ptr());
  return made.release().ptr();
}

nb::list wrap_all(const std::vector<Value>& values) {
  nb::list all;
  for (const Value& each : values) all.append(wrap(each));
  return all;
}

namespace {

PyObject* not_implemented() {
  Py_INCREF(Py_NotImplemented);
  return Py_NotImplemented;
}

// Returns the shortest text that converts back to the same number: 3.14, 0, 1e-05.
std::string text_of(double x) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, x).ptr);
}

template <class F> PyObject* binary(PyObject* a, PyObject* b, F f) noexcept {
  return guarded<PyObject*>(nullptr, [=] {
    Number number = 0;
    if (is_value(a)) {
      if (is_value(b)) [[likely]]
        return new_value(f(value_in(a), value_in(b)));
      if (number_of(b, number)) return new_value(f(value_in(a), number.real()));
    } else if (number_of(a, number)) {
      return new_value(f(number.real(), value_in(b)));
    }
    return not_implemented();
  });
}

PyObject* add_values(PyObject* a, PyObject* b) noexcept {
  return binary(a, b, [](const auto& x, const auto& y) { return x + y; });
}
PyObject* sub_values(PyObject* a, PyObject* b) noexcept {
  return binary(a, b, [](const auto& x, const auto& y) { return x - y; });
}
PyObject* mul_values(PyObject* a, PyObject* b) noexcept {
  return binary(a, b, [](const auto& x, const auto& y) { return x * y; });
}
PyObject* div_values(PyObject* a, PyObject* b) noexcept {
  return binary(a, b, [](const auto& x, const auto& y) { return x / y; });
}
PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) noexcept {
  return guarded<PyObject*>(nullptr, [=] {
    Number exponent = 0;
    if (modulus != Py_None || !is_value(a) || !number_of(b, exponent)) return not_implemented();
    return new_value(pow(value_in(a), exponent.real()));
  });
}
PyObject* negative(PyObject* x) noexcept {
  return guarded<PyObject*>(nullptr, [=] { return new_value(-value_in(x)); });
}
PyObject* itself(PyObject* x) {
  Py_INCREF(x);
  return x;
}
PyObject* as_float(PyObject* x) noexcept {
  return guarded<PyObject*>(nullptr, [=] { return PyFloat_FromDouble(value_in(x).data()); });
}

PyType_Slot slots[] = {{Py_nb_add, reinterpret_cast<void*>(add_values)},
                       {Py_nb_subtract, reinterpret_cast<void*>(sub_values)},
                       {Py_nb_multiply, reinterpret_cast<void*>(mul_values)},
                       {Py_nb_true_divide, reinterpret_cast<void*>(div_values)},
                       {Py_nb_power, reinterpret_cast<void*>(power)},
                       {Py_nb_negative, reinterpret_cast<void*>(negative)},
                       {Py_nb_positive, reinterpret_cast<void*>(itself)},
                       {Py_nb_float, reinterpret_cast<void*>(as_float)},
                       {0, nullptr}};

void construct(nb::pointer_and_handle<Scalar> self, const NumberLike& data, const DeviceLike& device) {
  auto* scalar = new (self.p) Scalar(Value(data.value.real(), device.get()));
  scalar->self = self.h.ptr();
  scalar->value.set_face(self.h.ptr());
}

// A recorded value has a node in the graph; a value from no_grad has no operands.
nb::object operands_of(const Scalar& x) {
  nb::set operands;
  if (x.value.tensor().requires_grad())
    for (Value& each : x.value.previous()) operands.add(wrap(std::move(each)));
  return operands;
}

template <Value (*kFunction)(const Value&)> nb::object function(const Scalar& x) { return wrap(kFunction(x.value)); }

nb::object moved(const Scalar& x, Device device) { return wrap(to(x.value, device)); }

std::string repr(const Scalar& x) {
  const std::string device = nb::str(nb::cast(x.value.tensor().device())).c_str();
  return "Value(data=" + text_of(x.value.data()) + ", grad=" + text_of(x.value.grad()) + ", device=" + device + ")";
}

void bind_graph(nb::class_<Scalar>& value) {
  value
      .def(
          "backward", [](const Scalar& x) { unlocked([v = x.value] { v.backward(); }); },
          "Adds the derivatives of this Value to the gradients of all Values from which it was computed, and adds 1 to its "
          "own gradient. Several calls are allowed.")
      .def(
          "zero_grad", [](const Scalar& x) { Tensor(x.value.tensor()).clear_grad(); }, "Sets the gradient to 0.")
      .def_prop_ro("_prev", operands_of,
                   "The Values from which this Value was computed, always as the same objects; empty for a leaf.")
      .def_prop_ro(
          "_op", [](const Scalar& x) { return x.value.op(); },
          "The op that computed this Value: '+', '*', '**2' or 'ReLU', for example; '' for a leaf.")
      .def_prop_rw(
          "label", [](const Scalar& x) { return x.value.label(); },
          [](Scalar& x, const std::string& text) { x.value.set_label(text); }, "The name in drawings of the graph.")
      .def("_draw", [](const Scalar& x, const std::string& direction, size_t limit) {
        return unlocked(
            [root = x.value.tensor(), options = DrawOptions{direction, limit}] { return draw_dot(root, options); });
      });
}
}  // namespace

std::vector<Value> values_of(const nb::object& given, Device device) {
  std::vector<Value> values;
  const auto add = [&](nb::handle each) {
    Number number = 0;
    if (is_value(each.ptr())) values.push_back(value_in(each.ptr()));
    else if (number_of(each.ptr(), number)) values.emplace_back(number.real(), device);
    else throw nb::type_error(("[value] expected Values or numbers, not " + type_name_of(each)).c_str());
  };
  Number number = 0;
  if (is_value(given.ptr()) || number_of(given.ptr(), number)) add(given);
  else
    for (const nb::handle each : given) add(each);
  return values;
}

void bind_values(nb::module_& m) {
  nb::class_<Scalar> value(m, "Value", nb::is_final(), nb::is_weak_referenceable(), nb::type_slots(slots),
                           "A micrograd-style scalar in f64 that records its computation.\n\n"
                           "Operators: `+ - * /` with Values and numbers on either side, `**` with a number, unary `-`.\n"
                           "Raises RuntimeError with the reason for a device that is not available.");
  value_type = reinterpret_cast<PyTypeObject*>(value.ptr());
  value.def("__init__", construct, nb::arg("data"), nb::arg("device") = nb::none())
      .def("relu", function<relu>, "Returns the maximum of this Value and 0; the gradient at 0 is 0.")
      .def("tanh", function<tanh>, "Returns the hyperbolic tangent.")
      .def("exp", function<exp>, "Returns e to the power of this Value.")
      .def("log", function<log>, "Returns the natural logarithm; NaN below 0 and -inf at 0.")
      .def(
          "to", [](const Scalar& x, const DeviceLike& device) { return moved(x, device.get()); }, nb::arg("device"),
          "Returns a copy on a device; gradients flow back.")
      .def(
          "cpu", [](const Scalar& x) { return moved(x, named_device("cpu")); },
          "Returns a copy on the cpu; gradients flow back.")
      .def(
          "cuda", [](const Scalar& x, int64_t index) { return moved(x, named_device("cuda:" + std::to_string(index))); },
          nb::arg("index") = 0,
          "Returns a copy on a CUDA device; gradients flow back. Raises RuntimeError, with the reason, if there is no such "
          "device.")
      .def_prop_rw(
          "data", [](const Scalar& x) { return x.value.data(); },
          [](Scalar& x, const NumberLike& data) { x.value.set_data(data.value.real()); }, "The number.")
      .def_prop_rw(
          "grad", [](const Scalar& x) { return x.value.grad(); },
          [](Scalar& x, const NumberLike& grad) { x.value.set_grad(grad.value.real()); },
          "The gradient; 0 before the first backward.")
      .def_prop_ro(
          "device", [](const Scalar& x) { return x.value.tensor().device(); }, "The device that holds the number.")
      .def(
          "item", [](const Scalar& x) { return x.value.data(); }, "Returns the number.")
      .def("__repr__", repr)
      .def("__reduce__", [](nb::handle self) {
        return nb::make_tuple(self.type(), nb::make_tuple(self.attr("data"), nb::str(self.attr("device"))));
      });
  bind_graph(value);
}

}  // namespace plugrad::python
