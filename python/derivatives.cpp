// Derivatives of Python functions; plugrad/autograd.py converts arguments and results.
#include <python/binding.hpp>
#include <python/held.hpp>

#include <utility>
#include <vector>

namespace plugrad::python {
namespace {
using Tensors = std::vector<Tensor>;

nb::list list_of(const Tensors& tensors) {
  nb::list all;
  for (const Tensor& each : tensors) all.append(wrap(each));
  return all;
}
nb::list list_of(const std::vector<Tensors>& rows) {
  nb::list all;
  for (const Tensors& each : rows) all.append(list_of(each));
  return all;
}

// f takes and returns lists of tensors.
TensorFunction function_of(nb::callable f) {
  return [held = Held(std::move(f))](const Tensors& inputs) {
    const nb::gil_scoped_acquire locked;
    return nb::cast<Tensors>(held.get()(list_of(inputs)));
  };
}

template <auto kProduct> nb::object product(nb::callable f, const Tensors& inputs, const Tensors& v, bool create_graph) {
  const TensorFunction function = function_of(std::move(f));
  const auto [results, products] = unlocked([&] { return kProduct(function, inputs, v, create_graph); });
  return nb::make_tuple(list_of(results), list_of(products));
}

template <auto kMatrices> nb::object matrices(nb::callable f, const Tensors& inputs, bool create_graph) {
  const TensorFunction function = function_of(std::move(f));
  return list_of(unlocked([&] { return kMatrices(function, inputs, create_graph); }));
}

void check(nb::callable f, const Tensors& inputs, double eps, double atol, double rtol) {
  const TensorFunction function = function_of(std::move(f));
  unlocked([&] { gradcheck(function, inputs, {eps, atol, rtol}); });
}

void check_again(nb::callable f, const Tensors& inputs, const Tensors& seeds, double eps, double atol, double rtol) {
  const TensorFunction function = function_of(std::move(f));
  unlocked([&] { gradgradcheck(function, inputs, seeds, {eps, atol, rtol}); });
}
}  // namespace

void bind_derivatives(nb::module_& m) {
  bind_transforms(m);
  bind_optimize(m);
  m.def("_vjp", product<vjp>);
  m.def("_jvp", product<jvp>);
  m.def("_jacobian", matrices<jacobian>);
  m.def("_hessian", matrices<hessian>);
  m.def("_gradcheck", check);
  m.def("_gradgradcheck", check_again);
}

}  // namespace plugrad::python
