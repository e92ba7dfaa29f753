// Functions that take tensors, extents or axes one by one, as in PyTorch and NumPy, or axes as two lists.
#include <python/bound.hpp>

#include <string>

namespace plugrad::python {
namespace {

// --- einsum.

bool is_list_of_subscripts(const nb::handle x) { return nb::isinstance<nb::list>(x) || nb::isinstance<nb::tuple>(x); }

// Returns the letters for a list of numbers; Python's Ellipsis becomes "...".
std::string subscripts_of(const nb::handle list) {
  std::string text;
  for (const nb::handle each : list) {
    if (each.ptr() == Py_Ellipsis) {
      text += "...";
      continue;
    }
    int64_t number = 0;
    if (!nb::try_cast(each, number)) throw nb::next_overload();
    if (number < 0 || number >= 52)
      throw Error(Code::invalid, "[einsum] the subscript " + std::to_string(number) + " is out of range: 0 to 51 expected");
    text += static_cast<char>(number < 26 ? 'A' + number : 'a' + number - 26);
  }
  return text;
}

// einsum(a, [0, 1], b, [1, 2], [0, 2])
Tensor einsum_of_lists(const nb::args& given) {
  std::string equation;
  std::vector<Tensor> operands;
  size_t i = 0;
  for (; i + 1 < given.size(); i += 2) {
    if (!is_tensor(given[i].ptr()) || !is_list_of_subscripts(given[i + 1])) throw nb::next_overload();
    operands.push_back(tensor_in(given[i].ptr()));
    equation += (i ? "," : "") + subscripts_of(given[i + 1]);
  }
  if (!i || (i < given.size() && !is_list_of_subscripts(given[i]))) throw nb::next_overload();
  if (i < given.size()) equation += "->" + subscripts_of(given[i]);
  return unlocked([&] { return einsum(equation, operands); });
}

Tensor einsum_of_tensors(const std::string& equation, const nb::args& given) {
  const std::vector<Tensor> operands = tensors_of(given);
  return unlocked([&] { return einsum(equation, operands); });
}

// where(condition, 1.0, 0.0): returns a tensor of the common dtype of the two numbers.
Tensor where_of_numbers(const Tensor& condition, const NumberLike& a, const NumberLike& b) {
  const DType dtype = default_dtype<Number, Number>(a, b);
  return unlocked([chosen = condition, first = a.value, second = b.value, dtype] {
    return where(chosen, scalar(first, dtype, chosen.device()), scalar(second, dtype, chosen.device()));
  });
}

void bind_einsum(nb::module_& m) {
  m.def("einsum", einsum_of_tensors, nb::arg("equation"), nb::arg("operands"),
        nb::sig("def einsum(equation: str, *operands: Tensor) -> Tensor"));
  m.def("einsum", einsum_of_lists, nb::arg("operands"), nb::sig("def einsum(*operands: typing.Any) -> Tensor"));
}

// --- tensordot with a pair of lists.

Tensor tensordot_of_lists(const Tensor& a, const Tensor& b, const nb::object& axes) {
  if (nb::isinstance<nb::int_>(axes)) return tensordot(a, b, nb::cast<int64_t>(axes));
  ShapeLike first, second;
  if (!PySequence_Check(axes.ptr()) || nb::len(axes) != 2 || !nb::try_cast(nb::object(axes[0]), first) ||
      !nb::try_cast(nb::object(axes[1]), second))
    throw nb::next_overload();
  const Tensor left = a, right = b;
  return unlocked([&] { return tensordot(left, right, first.get(), second.get()); });
}

void bind_tensordot(nb::module_& m, nb::class_<Tensor>& tensor) {
  constexpr const char* kLists = "collections.abc.Sequence[collections.abc.Sequence[int]]) -> Tensor";
  for (const char* name : {"dims", "axes"}) {
    m.def("tensordot", tensordot_of_lists, nb::arg("a"), nb::arg("b"), nb::arg(name),
          nb::sig(("def tensordot(a: Tensor, b: Tensor, " + std::string(name) + ": int | " + kLists).c_str()));
    tensor.def("tensordot", tensordot_of_lists, nb::arg("b"), nb::arg(name),
               nb::sig(("def tensordot(self, b: Tensor, " + std::string(name) + ": int | " + kLists).c_str()));
  }
}

// --- Methods with extents or axes one by one.

template <Tensor (*kFunction)(const Tensor&, const Shape&)> Tensor of_numbers(const Tensor& x, const nb::args& numbers) {
  ShapeLike shape;
  if (!nb::try_cast(nb::object(numbers), shape)) throw nb::next_overload();
  const Tensor source = x;
  return unlocked([&] { return kFunction(source, shape.get()); });
}

void bind_of_numbers(nb::class_<Tensor>& tensor) {
  tensor.def("repeat", of_numbers<repeat>, nb::arg("repeats"), nb::sig("def repeat(self, *repeats: int) -> Tensor"))
      .def("tile", of_numbers<tile>, nb::arg("dims"), nb::sig("def tile(self, *dims: int) -> Tensor"))
      .def("flip", of_numbers<flip>, nb::arg("dims"), nb::sig("def flip(self, *dims: int) -> Tensor"));
}

// --- Functions of several shapes, and functions of several tensors that return as many results.

void bind_atleast(nb::module_& m, const char* name, Tensor (*function)(const Tensor&)) {
  m.def(
      name,
      [function](const nb::args& given) {
        const bool is_list =
            given.size() == 1 && (nb::isinstance<nb::list>(given[0]) || nb::isinstance<nb::tuple>(given[0]));
        nb::list all;
        for (const Tensor& each : tensors_of(is_list ? nb::handle(given[0]) : nb::handle(given)))
          all.append(wrap(function(each)));
        return nb::tuple(all);
      },
      nb::arg("tensors"), nb::sig(("def " + std::string(name) + "(*tensors: typing.Any) -> tuple[Tensor, ...]").c_str()));
}

nb::object broadcast_all(const nb::args& shapes) {
  Shape all;
  for (const nb::handle each : shapes) {
    ShapeLike shape;
    if (!nb::try_cast(nb::borrow(each), shape)) throw nb::next_overload();
    all = broadcast_shapes(all, shape.get());
  }
  return shape_tuple(all);
}
}  // namespace

void bind_variadic(nb::module_& m, nb::class_<Tensor>& tensor) {
  bind_einsum(m);
  m.def("where", where_of_numbers, nb::arg("condition"), nb::arg("a"), nb::arg("b"));
  bind_tensordot(m, tensor);
  bind_of_numbers(tensor);
  bind_atleast(m, "atleast_1d", atleast_1d);
  bind_atleast(m, "atleast_2d", atleast_2d);
  bind_atleast(m, "atleast_3d", atleast_3d);
  m.def("broadcast_shapes", broadcast_all, nb::arg("shapes"),
        nb::sig("def broadcast_shapes(*shapes: int | collections.abc.Sequence[int]) -> Size"));
  m.def(
      "chain_matmul",
      [](const nb::args& matrices) {
        const std::vector<Tensor> tensors = tensors_of(matrices);
        return unlocked([&] { return multi_dot(tensors); });
      },
      nb::arg("matrices"), nb::sig("def chain_matmul(*matrices: Tensor) -> Tensor"),
      "Returns the product of two or more matrices, in the order with the fewest multiplications: multi_dot of a list.");
}

}  // namespace plugrad::python
