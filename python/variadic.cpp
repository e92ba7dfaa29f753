// Functions that take tensors one by one, as in PyTorch and NumPy, or axes as two lists.
#include <python/bound.hpp>

#include <string>

namespace plugrad::python {
namespace {

// The tensors among the arguments; another overload fits where one is none.
std::vector<Tensor> tensors_of(const nb::handle given) {
  std::vector<Tensor> tensors;
  for (const nb::handle each : given) {
    if (!is_tensor(each.ptr())) throw nb::next_overload();
    tensors.push_back(tensor_in(each.ptr()));
  }
  return tensors;
}

// --- einsum.

// The letters of a list of numbers, in which Python's Ellipsis is "...".
std::string subscripts_of(const nb::handle list) {
  std::string text;
  for (const nb::handle each : list) {
    if (each.ptr() == Py_Ellipsis) {
      text += "...";
      continue;
    }
    const int64_t number = nb::cast<int64_t>(each);
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
    if (!is_tensor(given[i].ptr())) throw nb::next_overload();
    operands.push_back(tensor_in(given[i].ptr()));
    equation += (i ? "," : "") + subscripts_of(given[i + 1]);
  }
  if (i < given.size()) equation += "->" + subscripts_of(given[i]);
  return unlocked([&] { return einsum(equation, operands); });
}

Tensor einsum_of_tensors(const std::string& equation, const nb::args& given) {
  const std::vector<Tensor> operands = tensors_of(given);
  return unlocked([&] { return einsum(equation, operands); });
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
}  // namespace

void bind_variadic(nb::module_& m, nb::class_<Tensor>& tensor) {
  bind_einsum(m);
  bind_tensordot(m, tensor);
  m.def(
      "chain_matmul",
      [](const nb::args& matrices) {
        const std::vector<Tensor> tensors = tensors_of(matrices);
        return unlocked([&] { return multi_dot(tensors); });
      },
      nb::arg("matrices"), nb::sig("def chain_matmul(*matrices: Tensor) -> Tensor"),
      "The product of two matrices or more, in the order that takes the fewest multiplications: multi_dot of a list.");
}

}  // namespace plugrad::python
