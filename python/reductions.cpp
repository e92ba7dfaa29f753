// Sums, means and similar functions with a dtype for the result, as in PyTorch: sum(x, dtype="f64").
#include <python/binding.hpp>

namespace plugrad::python {
namespace {

// Converts the operand first, and converts the result again, because f itself may widen the dtype.
template <class F> Tensor in_dtype(const Tensor& x, const DTypeLike& dtype, F f) {
  const Tensor source = x;
  const DType wanted = dtype.get(x.dtype());
  const bool given = !dtype.given.is_none();
  return unlocked([&] { return given ? cast(f(cast(source, wanted)), wanted) : f(source); });
}

// own: the annotation of the operand, which a method does not have.
template <class Target, class... Own>
void bind_reduction(Target& target, const char* name, Tensor (*f)(const Tensor&, const Shape&, bool), const Own&... own) {
  target.def(
      name,
      [f](const Tensor& x, const ShapeLike& axes, bool keepdim, const DTypeLike& dtype) {
        return in_dtype(x, dtype, [&](const Tensor& source) { return f(source, axes.get(), keepdim); });
      },
      own..., nb::arg("dim") = nb::tuple(), nb::arg("keepdim") = false, nb::kw_only(), nb::arg("dtype"));
}

template <class Target, class... Own>
void bind_along(Target& target, const char* name, Tensor (*f)(const Tensor&, int), const Own&... own) {
  target.def(
      name,
      [f](const Tensor& x, int axis, const DTypeLike& dtype) {
        return in_dtype(x, dtype, [&](const Tensor& source) { return f(source, axis); });
      },
      own..., nb::arg("dim"), nb::kw_only(), nb::arg("dtype"));
}

template <class Target, class... Own> void bind_in_dtype(Target& target, const Own&... own) {
  bind_reduction(target, "sum", sum, own...);
  bind_reduction(target, "mean", mean, own...);
  bind_reduction(target, "prod", prod, own...);
  bind_along(target, "cumsum", cumsum, own...);
  bind_along(target, "cumprod", cumprod, own...);
  bind_along(target, "softmax", softmax, own...);
  bind_along(target, "softmin", softmin, own...);
  bind_along(target, "log_softmax", log_softmax, own...);
}
}  // namespace

void bind_reductions(nb::module_& m, nb::class_<Tensor>& tensor) {
  bind_in_dtype(m, nb::arg("x"));
  bind_in_dtype(tensor);
}

}  // namespace plugrad::python
