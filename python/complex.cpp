// Parts and conjugates of tensors.
#include <python/bound.hpp>

#include <plugrad/ops/complex.hpp>

namespace plugrad::python {
namespace {
// Copies data into a part of x.
template <Tensor (*kPart)(const Tensor&)> void set_part(Tensor& x, const Tensor& data) {
  unlocked([x, data] { kPart(x).copy_(data); });
}

}  // namespace

void bind_parts(nb::class_<Tensor>& tensor) {
  tensor
      .def_prop_rw("real", real, set_part<real>,
                   "A view of the real part; this tensor if it is real. Setting it copies into the part.")
      .def_prop_rw("imag", imag, set_part<imag>,
                   "A view of the imaginary part. Raises ValueError for a real tensor. Setting it copies into the part.")
      .def("conj", conj, "Returns the conjugate; this tensor if it is real.")
      .def(
          "resolve_conj", [](const Tensor& x) { return x; }, "Returns this tensor: conj() computes at once.")
      .def("adjoint", adjoint, "Returns the conjugate with the last two axes swapped.")
      .def_prop_ro("mH", adjoint, "The conjugate with the last two axes swapped.")
      .def_prop_ro(
          "H", [](const Tensor& x) { return x.rank() < 2 ? conj(x) : adjoint(x); },
          "The conjugate with the last two axes swapped; the conjugate for fewer than two axes.");
}

}  // namespace plugrad::python
