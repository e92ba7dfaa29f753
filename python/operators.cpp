// Operators and subscripts as slots of the type. The interpreter calls slots without parsing arguments, and parsing takes
// most of the time of an op on one element.
#include <python/binding.hpp>

namespace plugrad::python {

PyTypeObject* tensor_type = nullptr;

PyObject* new_tensor(Tensor&& tensor) {
  nb::object made = nb::inst_alloc(nb::handle(reinterpret_cast<PyObject*>(tensor_type)));
  new (nb::inst_ptr<Tensor>(made)) Tensor(std::move(tensor));
  nb::inst_mark_ready(made);
  return made.release().ptr();
}

namespace {

PyObject* not_implemented() {
  Py_INCREF(Py_NotImplemented);
  return Py_NotImplemented;
}

// Calls f on the operands. A long op gets copies of the handles and runs without the GIL.
template <class F> PyObject* apply(const Tensor& a, F f) {
  return new_tensor(is_long(a) ? unlocked([=] { return f(a); }) : f(a));
}
template <class F> PyObject* apply(const Tensor& a, const Tensor& b, F f) {
  return new_tensor(is_long(a) || is_long(b) ? unlocked([=] { return f(a, b); }) : f(a, b));
}

// Calls f on a tensor and a list or an array, in either order.
template <class F> PyObject* mixed(PyObject* a, PyObject* b, F f) {
  if (is_tensor(a)) return holds_numbers(b) ? apply(tensor_in(a), tensor_beside(b, tensor_in(a)), f) : not_implemented();
  return holds_numbers(a) ? apply(tensor_beside(a, tensor_in(b)), tensor_in(b), f) : not_implemented();
}

// Calls F::call on two tensors, or on a tensor and a number, a list or an array on either side.
template <class F> PyObject* binary(PyObject* a, PyObject* b) noexcept {
  return guarded<PyObject*>(nullptr, [=] {
    const auto call = [](const Tensor& x, const Tensor& y) { return F::call(x, y); };
    Number number = 0;
    if (is_tensor(a)) {
      if (is_tensor(b)) [[likely]]
        return apply(tensor_in(a), tensor_in(b), call);
      if (number_of(b, number)) return apply(tensor_in(a), [=](const Tensor& x) { return F::call(x, number); });
    } else if (number_of(a, number)) {
      return apply(tensor_in(b), [=](const Tensor& y) { return F::call(number, y); });
    }
    return mixed(a, b, call);
  });
}

struct Add {
  static constexpr const char* kInPlace = "+=";
  static Tensor call(const Tensor& a, const Tensor& b) { return add(a, b); }
  static Tensor call(const Tensor& a, Number b) { return add(a, b); }
  static Tensor call(Number a, const Tensor& b) { return add(b, a); }
};
struct Sub {
  static constexpr const char* kInPlace = "-=";
  template <class A, class B> static Tensor call(const A& a, const B& b) { return sub(a, b); }
};
struct Mul {
  static constexpr const char* kInPlace = "*=";
  static Tensor call(const Tensor& a, const Tensor& b) { return mul(a, b); }
  static Tensor call(const Tensor& a, Number b) { return mul(a, b); }
  static Tensor call(Number a, const Tensor& b) { return mul(b, a); }
};
struct Div {
  static constexpr const char* kInPlace = "/=";
  template <class A, class B> static Tensor call(const A& a, const B& b) { return div(a, b); }
};
struct Pow {
  template <class A, class B> static Tensor call(const A& a, const B& b) { return pow(a, b); }
};
struct FloorDiv {
  static constexpr const char* kInPlace = "//=";
  template <class A, class B> static Tensor call(const A& a, const B& b) { return floor_divide(a, b); }
};
struct Mod {
  static constexpr const char* kInPlace = "%=";
  template <class A, class B> static Tensor call(const A& a, const B& b) { return remainder(a, b); }
};
struct And {
  static constexpr const char* kInPlace = "&=";
  static Tensor call(const Tensor& a, const Tensor& b) { return bitwise_and(a, b); }
  static Tensor call(const Tensor& a, Number b) { return bitwise_and(a, b); }
  static Tensor call(Number a, const Tensor& b) { return bitwise_and(b, a); }
};
struct Or {
  static constexpr const char* kInPlace = "|=";
  static Tensor call(const Tensor& a, const Tensor& b) { return bitwise_or(a, b); }
  static Tensor call(const Tensor& a, Number b) { return bitwise_or(a, b); }
  static Tensor call(Number a, const Tensor& b) { return bitwise_or(b, a); }
};
struct Xor {
  static constexpr const char* kInPlace = "^=";
  static Tensor call(const Tensor& a, const Tensor& b) { return bitwise_xor(a, b); }
  static Tensor call(const Tensor& a, Number b) { return bitwise_xor(a, b); }
  static Tensor call(Number a, const Tensor& b) { return bitwise_xor(b, a); }
};
struct LeftShift {
  static constexpr const char* kInPlace = "<<=";
  template <class A, class B> static Tensor call(const A& a, const B& b) { return bitwise_left_shift(a, b); }
};
struct RightShift {
  static constexpr const char* kInPlace = ">>=";
  template <class A, class B> static Tensor call(const A& a, const B& b) { return bitwise_right_shift(a, b); }
};

// Converts True and False to a tensor of bool if the second operand is a tensor of bools: as a number, a bool would make the
// result an integer.
nb::object bool_beside(PyObject* number, PyObject* tensor) {
  if (!PyBool_Check(number) || !is_tensor(tensor) || tensor_in(tensor).dtype() != DType::boolean) return nb::borrow(number);
  return wrap(scalar(number == Py_True, DType::boolean, tensor_in(tensor).device()));
}
template <class F> PyObject* bitwise(PyObject* a, PyObject* b) noexcept {
  return guarded<PyObject*>(nullptr, [=] { return binary<F>(bool_beside(a, b).ptr(), bool_beside(b, a).ptr()); });
}

PyObject* quotient_and_rest(PyObject* a, PyObject* b) noexcept {
  return guarded<PyObject*>(nullptr, [=]() -> PyObject* {
    const nb::object quotient = nb::steal(binary<FloorDiv>(a, b));
    if (!quotient.is_valid() || quotient.ptr() == Py_NotImplemented) return nb::object(quotient).release().ptr();
    const nb::object rest = nb::steal(binary<Mod>(a, b));
    return rest.is_valid() ? PyTuple_Pack(2, quotient.ptr(), rest.ptr()) : nullptr;
  });
}

PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) noexcept {
  return modulus == Py_None ? binary<Pow>(a, b) : not_implemented();
}

PyObject* matrix_product(PyObject* a, PyObject* b) noexcept {
  return guarded<PyObject*>(nullptr, [=] {
    const auto product = [](const Tensor& x, const Tensor& y) { return matmul(x, y); };
    return is_tensor(a) && is_tensor(b) ? apply(tensor_in(a), tensor_in(b), product) : mixed(a, b, product);
  });
}

template <Tensor (*kFunction)(const Tensor&)> PyObject* unary(PyObject* x) noexcept {
  return guarded<PyObject*>(nullptr, [=] { return apply(tensor_in(x), kFunction); });
}

PyObject* itself(PyObject* x) {
  Py_INCREF(x);
  return x;
}

// --- Operators such as +=. They write in place if the op is not recorded; else the name is bound to a new tensor, and the
// old tensor does not change. A leaf with a gradient is an error while recording, because `for p in parameters: p -= ...`
// would change no parameter.

bool writes_in_place(const Tensor& a, const Tensor* b) {
  return !grad_enabled() || (!a.requires_grad() && !(b && b->requires_grad()));
}

void require_no_leaf(const Tensor& a, const char* op) {
  if (!grad_enabled() || !a.requires_grad() || !a.is_leaf()) return;
  throw Error(Code::invalid, std::string("[") + op +
                                 "] a leaf that requires a gradient cannot change in place while recording: put the "
                                 "statement under `with plugrad.no_grad():`, or write x = x " + *op + " ...");
}

template <class F, class InPlace> PyObject* in_place(PyObject* a, PyObject* b, InPlace write) noexcept {
  return guarded<PyObject*>(nullptr, [=] {
    if (!is_tensor(a)) return binary<F>(a, b);
    Tensor target = tensor_in(a);
    require_no_leaf(target, F::kInPlace);
    Number number = 0;
    if (!is_tensor(b) && !number_of(b, number) && holds_numbers(b)) {
      const nb::object operand = wrap(tensor_beside(b, target));
      return in_place<F>(a, operand.ptr(), write);
    }
    const bool fits =
        is_tensor(b) ? writes_in_place(target, &tensor_in(b)) : number_of(b, number) && writes_in_place(target, nullptr);
    if (!fits) return binary<F>(a, b);
    if (is_tensor(b)) {
      const Tensor operand = tensor_in(b);
      unlocked([&] { write(target, operand); });
    } else {
      unlocked([&] { write(target, number); });
    }
    Py_INCREF(a);
    return a;
  });
}

PyObject* add_in_place(PyObject* a, PyObject* b) noexcept {
  return in_place<Add>(a, b, [](Tensor& x, const auto& y) {
    if constexpr (std::is_same_v<std::decay_t<decltype(y)>, Tensor>)
      x.add_(y);
    else
      x.copy_(add(x.detach(), y));
  });
}
PyObject* sub_in_place(PyObject* a, PyObject* b) noexcept {
  return in_place<Sub>(a, b, [](Tensor& x, const auto& y) {
    if constexpr (std::is_same_v<std::decay_t<decltype(y)>, Tensor>)
      x.add_(y, -1);
    else
      x.copy_(sub(x.detach(), y));
  });
}
PyObject* mul_in_place(PyObject* a, PyObject* b) noexcept {
  return in_place<Mul>(a, b, [](Tensor& x, const auto& y) {
    if constexpr (std::is_same_v<std::decay_t<decltype(y)>, Tensor>)
      x.copy_(mul(x.detach(), y.detach()));
    else
      x.mul_(y);
  });
}
PyObject* div_in_place(PyObject* a, PyObject* b) noexcept {
  return in_place<Div>(a, b, [](Tensor& x, const auto& y) {
    if constexpr (std::is_same_v<std::decay_t<decltype(y)>, Tensor>)
      x.copy_(div(x.detach(), y.detach()));
    else
      x.copy_(div(x.detach(), y));
  });
}
template <class F> PyObject* replaced(PyObject* a, PyObject* b) noexcept {
  return guarded<PyObject*>(nullptr, [=] {
    const nb::object operand = bool_beside(b, a);
    return in_place<F>(a, operand.ptr(), [](Tensor& x, const auto& y) { x.copy_(F::call(x.detach(), y)); });
  });
}

// --- Comparisons: element by element, as bool.

template <class F> PyObject* compared(PyObject* a, PyObject* b, F f) {
  Number number = 0;
  if (is_tensor(b)) return apply(tensor_in(a), tensor_in(b), f);
  if (number_of(b, number)) return apply(tensor_in(a), [=](const Tensor& x) { return f(x, number); });
  return mixed(a, b, [=](const Tensor& x, const Tensor& y) { return f(x, y); });
}

PyObject* compare(PyObject* a, PyObject* b, int op) noexcept {
  return guarded<PyObject*>(nullptr, [=]() -> PyObject* {
    if (!is_tensor(a)) return not_implemented();
    switch (op) {
      case Py_EQ: return compared(a, b, [](const Tensor& x, const auto& y) { return eq(x, y); });
      case Py_NE: return compared(a, b, [](const Tensor& x, const auto& y) { return ne(x, y); });
      case Py_LT: return compared(a, b, [](const Tensor& x, const auto& y) { return lt(x, y); });
      case Py_LE: return compared(a, b, [](const Tensor& x, const auto& y) { return le(x, y); });
      case Py_GT: return compared(a, b, [](const Tensor& x, const auto& y) { return gt(x, y); });
      default: return compared(a, b, [](const Tensor& x, const auto& y) { return ge(x, y); });
    }
  });
}

// Hashes by identity, since == compares elements. The addresses of objects are multiples of sixteen.
Py_hash_t hash(PyObject* x) noexcept { return Py_hash_t(reinterpret_cast<uintptr_t>(x) >> 4); }

// --- A tensor of one element as a number.

PyObject* as_float(PyObject* x) noexcept {
  return guarded<PyObject*>(nullptr, [=] {
    const Tensor t = tensor_in(x);
    return PyFloat_FromDouble(unlocked([t] { return t.item<double>(); }));
  });
}
PyObject* as_int(PyObject* x) noexcept {
  return guarded<PyObject*>(nullptr, [=] {
    const Tensor t = tensor_in(x);
    if (!is_floating(t.dtype())) return PyLong_FromLongLong(unlocked([t] { return t.item<int64_t>(); }));
    return PyLong_FromDouble(unlocked([t] { return t.item<double>(); }));
  });
}
PyObject* as_index(PyObject* x) noexcept {
  return guarded<PyObject*>(nullptr, [=]() -> PyObject* {
    const Tensor& t = tensor_in(x);
    if (is_integer(t.dtype()) && t.count() == 1) return as_int(x);
    PyErr_SetString(PyExc_TypeError, "[index] only a tensor of one whole number is an index");
    return nullptr;
  });
}
int as_bool(PyObject* x) noexcept {
  return guarded(-1, [=] {
    const Tensor t = tensor_in(x);
    return static_cast<int>(unlocked([t] { return t.item<bool>(); }));
  });
}

// --- As a sequence.

Py_ssize_t length(PyObject* x) noexcept {
  return guarded<Py_ssize_t>(-1, [=]() -> Py_ssize_t {
    const Tensor& t = tensor_in(x);
    if (t.rank()) return t.size(0);
    PyErr_SetString(PyExc_TypeError, "[len] a tensor of rank 0 has no length");
    return -1;
  });
}
PyObject* subscript(PyObject* x, PyObject* key) noexcept {
  return guarded<PyObject*>(nullptr, [=] { return new_tensor(index_tensor(tensor_in(x), key)); });
}
int assign_subscript(PyObject* x, PyObject* key, PyObject* value) noexcept {
  return guarded(-1, [=] {
    if (!value) {
      PyErr_SetString(PyExc_TypeError, "[del] elements of a tensor cannot be deleted");
      return -1;
    }
    assign_index(tensor_in(x), key, value);
    return 0;
  });
}

template <class F> void* slot(F* function) { return reinterpret_cast<void*>(function); }
}  // namespace

PyType_Slot* tensor_slots() {
  static PyType_Slot slots[] = {
      {Py_nb_add, slot(binary<Add>)}, {Py_nb_subtract, slot(binary<Sub>)}, {Py_nb_multiply, slot(binary<Mul>)},
      {Py_nb_true_divide, slot(binary<Div>)}, {Py_nb_power, slot(power)}, {Py_nb_matrix_multiply, slot(matrix_product)},
      {Py_nb_floor_divide, slot(binary<FloorDiv>)}, {Py_nb_remainder, slot(binary<Mod>)},
      {Py_nb_divmod, slot(quotient_and_rest)}, {Py_nb_and, slot(bitwise<And>)}, {Py_nb_or, slot(bitwise<Or>)},
      {Py_nb_xor, slot(bitwise<Xor>)}, {Py_nb_lshift, slot(binary<LeftShift>)}, {Py_nb_rshift, slot(binary<RightShift>)},
      {Py_nb_invert, slot(unary<bitwise_not>)}, {Py_nb_negative, slot(unary<neg>)}, {Py_nb_positive, slot(itself)},
      {Py_nb_absolute, slot(unary<abs>)}, {Py_nb_inplace_add, slot(add_in_place)},
      {Py_nb_inplace_subtract, slot(sub_in_place)}, {Py_nb_inplace_multiply, slot(mul_in_place)},
      {Py_nb_inplace_true_divide, slot(div_in_place)}, {Py_nb_inplace_floor_divide, slot(replaced<FloorDiv>)},
      {Py_nb_inplace_remainder, slot(replaced<Mod>)}, {Py_nb_inplace_and, slot(replaced<And>)},
      {Py_nb_inplace_or, slot(replaced<Or>)}, {Py_nb_inplace_xor, slot(replaced<Xor>)},
      {Py_nb_inplace_lshift, slot(replaced<LeftShift>)}, {Py_nb_inplace_rshift, slot(replaced<RightShift>)},
      {Py_nb_float, slot(as_float)}, {Py_nb_int, slot(as_int)}, {Py_nb_index, slot(as_index)},
      {Py_nb_bool, slot(as_bool)}, {Py_tp_richcompare, slot(compare)}, {Py_tp_hash, slot(hash)},
      {Py_mp_length, slot(length)}, {Py_mp_subscript, slot(subscript)}, {Py_mp_ass_subscript, slot(assign_subscript)},
      buffer_slots[0], buffer_slots[1], {0, nullptr}};
  return slots;
}

}  // namespace plugrad::python
