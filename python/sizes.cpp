// Forms of factories that the core does not have: sizes one by one, as in PyTorch's zeros(2, 3), and zeros_like in another
// dtype or on another device.
#include <python/bound.hpp>

#include <string>

namespace plugrad::python {
namespace {

template <class Make> Tensor of_sizes(const nb::handle sizes, Make make) {
  ShapeLike shape;
  if (!nb::len(sizes) || !nb::try_cast(nb::tuple(sizes), shape)) throw nb::next_overload();
  return unlocked([extents = shape.get(), make] { return make(extents); });
}

constexpr const char* kOfSizes = "(*sizes: int, dtype: DType | str | type | None = None, device: Device | str | None = None";
constexpr const char* kTracked = ", requires_grad: bool = False) -> Tensor";

template <class Make> void bind_filled(nb::module_& m, const char* name, Make make) {
  m.def(
      name,
      [make](const nb::args& sizes, const DTypeLike& dtype, const DeviceLike& device, bool requires_grad) {
        const auto made = [make, type = dtype.get(default_floating()), where = device.get()](const Shape& shape) {
          return make(shape, type, where);
        };
        return with_gradient(of_sizes(sizes, made), requires_grad);
      },
      nb::arg("sizes"), nb::kw_only(), nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(),
      nb::arg("requires_grad") = false, nb::sig(("def " + std::string(name) + kOfSizes + kTracked).c_str()));
}

// first, second: the names of the two parameters of the distribution.
template <class Make> void bind_drawn(nb::module_& m, const char* name, const char* first, const char* second, Make make) {
  m.def(
      name,
      [make](const nb::args& sizes, const DTypeLike& dtype, const DeviceLike& device, double a, double b, bool tracks) {
        const auto made = [=, type = dtype.get(default_floating()), where = device.get()](const Shape& shape) {
          return make(shape, type, where, a, b);
        };
        return with_gradient(of_sizes(sizes, made), tracks);
      },
      nb::arg("sizes"), nb::kw_only(), nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(), nb::arg(first) = 0.0,
      nb::arg(second) = 1.0, nb::arg("requires_grad") = false,
      nb::sig(
          ("def " + std::string(name) + kOfSizes + ", " + first + ": float = 0.0, " + second + ": float = 1.0" + kTracked)
              .c_str()));
}

Tensor full_as(const Tensor& like, const NumberLike& value, const DTypeLike& dtype, const DeviceLike& device,
               bool requires_grad) {
  const Device where = device.given.is_none() ? like.device() : device.get();
  const auto made = [shape = like.shape(), number = value.value, type = dtype.get(like.dtype()), where] {
    return full(shape, number, type, where);
  };
  return with_gradient(unlocked(made), requires_grad);
}

// full(2, 3, 7) and full(2, 3, fill_value=7): without a name, the value comes last.
Tensor full_of_sizes(const nb::args& sizes, const nb::object& value, const DTypeLike& dtype, const DeviceLike& device,
                     bool requires_grad) {
  nb::list extents(sizes);
  const nb::object last = value.is_none() && nb::len(extents) ? nb::object(extents.attr("pop")()) : value;
  NumberLike number;
  if (!nb::try_cast(last, number)) throw nb::next_overload();
  const auto made = [number = number.value, type = dtype.get(dtype_of(number)), where = device.get()](const Shape& shape) {
    return full(shape, number, type, where);
  };
  return with_gradient(of_sizes(extents, made), requires_grad);
}

// full((2, 3), 1j): c64 by default, or c128 if the default dtype is f64.
Tensor full_of_complex(const ShapeLike& shape, const nb::object& value, const DTypeLike& dtype, const DeviceLike& device,
                       bool requires_grad) {
  if (!PyComplex_Check(value.ptr())) throw nb::next_overload();
  const DType wanted = dtype.get(complex_of(default_floating()));
  if (!is_complex(wanted))
    throw Error(Code::invalid,
                std::string("[full] a complex fill_value for a tensor of ") + dtype_name(wanted) + ": give c64 or c128");
  const Tensor number = tensor_from(value, wanted, device.get());
  return with_gradient(unlocked([number, extents = shape.get()] { return clone(expand(number, extents)); }), requires_grad);
}

void bind_like(nb::module_& m, const char* name, int64_t value) {
  m.def(
      name,
      [value](const Tensor& like, const DTypeLike& dtype, const DeviceLike& device, bool requires_grad) {
        return full_as(like, {value}, dtype, device, requires_grad);
      },
      nb::arg("like"), nb::kw_only(), nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(),
      nb::arg("requires_grad") = false);
}
}  // namespace

void bind_sizes(nb::module_& m) {
  bind_filled(m, "zeros", zeros);
  bind_filled(m, "ones", ones);
  bind_filled(m, "empty", [](const Shape& shape, DType dtype, Device device) { return empty(shape, dtype, device); });
  bind_drawn(m, "rand", "low", "high", rand);
  bind_drawn(m, "randn", "mean", "std", randn);
  bind_like(m, "zeros_like", 0);
  bind_like(m, "ones_like", 1);
  bind_like(m, "empty_like", 0);
  m.def("full_like", full_as, nb::arg("like"), nb::arg("fill_value"), nb::kw_only(), nb::arg("dtype") = nb::none(),
        nb::arg("device") = nb::none(), nb::arg("requires_grad") = false);
  m.def("full", full_of_complex, nb::arg("shape"), nb::arg("fill_value"), nb::arg("dtype") = nb::none(),
        nb::arg("device") = nb::none(), nb::kw_only(), nb::arg("requires_grad") = false,
        nb::sig("def full(shape: int | collections.abc.Sequence[int], fill_value: complex, dtype: DType | str | type | None "
                "= None, device: Device | str | None = None, *, requires_grad: bool = False) -> Tensor"));
  m.def("full", full_of_sizes, nb::arg("sizes"), nb::kw_only(), nb::arg("fill_value") = nb::none(),
        nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(), nb::arg("requires_grad") = false,
        nb::sig("def full(*sizes: float, fill_value: float | None = None, dtype: DType | str | type | None = None, "
                "device: Device | str | None = None, requires_grad: bool = False) -> Tensor"));
}

}  // namespace plugrad::python
