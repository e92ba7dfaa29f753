// Methods that write into their tensor: copies, fills, random numbers, and the forms of add_, sub_ and mul_ that generate.py
// does not write.
#include <python/bound.hpp>

#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/transform.hpp>

namespace plugrad::python {
namespace {

// Calls write(x) without the GIL, and returns the object of x.
template <class Write> TensorObject written(nb::handle self, Write write) {
  Tensor x = nb::cast<Tensor>(self);
  unlocked([&] { write(x); });
  return nb::borrow<TensorObject>(self);
}

TensorObject copy_into(nb::handle self, const nb::object& source) {
  const Tensor& x = nb::cast<Tensor&>(self);
  const Tensor from = nb::isinstance<Tensor>(source) ? nb::cast<Tensor>(source) : tensor_from(source, x.dtype(), x.device());
  return written(self, [&](Tensor& target) { target.copy_(from); });
}

void require_floating(const Tensor& x, const char* name) {
  if (!is_floating(x.dtype()))
    throw Error(Code::invalid, std::string("[") + name + "] a tensor of " + dtype_name(x.dtype()) +
                                   " holds no fractions: make it of a floating dtype");
}

template <int kSign> TensorObject add_number(nb::handle self, const NumberLike& other, const NumberLike& alpha) {
  const Number a = other.value, b = alpha.value;
  int64_t product = 0;
  const bool whole = !a.floating() && !b.floating() && !__builtin_mul_overflow(a.integer(), b.integer(), &product);
  const Number term = whole ? Number(product) : Number(a.real() * b.real());
  return written(self, [=](Tensor& x) {
    transform(x, kSign > 0 ? "add_" : "sub_",
              [=](const Tensor& old) { return kSign > 0 ? add(old, term) : sub(old, term); });
  });
}

template <class Draw> TensorObject drawn(nb::handle self, const char* name, Draw draw) {
  return written(self, [&](Tensor& x) {
    require_floating(x, name);
    x.copy_(draw(x));
  });
}

void bind_drawn(nb::class_<Tensor>& tensor) {
  tensor
      .def(
          "uniform_",
          [](nb::handle self, double low, double high) {
            return drawn(self, "uniform_",
                         [=](const Tensor& x) { return rand(x.shape(), x.dtype(), x.device(), low, high); });
          },
          nb::arg("low") = 0.0, nb::arg("high") = 1.0, "Draws every element uniformly from [low, high), in place.")
      .def(
          "normal_",
          [](nb::handle self, double mean, double deviation) {
            return drawn(self, "normal_",
                         [=](const Tensor& x) { return randn(x.shape(), x.dtype(), x.device(), mean, deviation); });
          },
          nb::arg("mean") = 0.0, nb::arg("std") = 1.0,
          "Draws every element from a normal distribution with this mean and standard deviation, in place.")
      .def(
          "exponential_",
          [](nb::handle self, double lambd) {
            return drawn(self, "exponential_",
                         [=](const Tensor& x) { return exponential(x.shape(), lambd, x.dtype(), x.device()); });
          },
          nb::arg("lambd") = 1.0, "Draws every element from an exponential distribution with rate lambd, in place.")
      .def(
          "bernoulli_",
          [](nb::handle self, double p) {
            return written(self, [=](Tensor& x) { x.copy_(bernoulli(zeros(x.shape(), DType::f32, x.device()), p)); });
          },
          nb::arg("p") = 0.5, "Sets every element to 1 with probability p, else to 0, in place.");
}

nb::object filled_with_complex(nb::handle self, const nb::object& number) {
  if (!PyComplex_Check(number.ptr())) throw nb::next_overload();
  const Tensor& x = nb::cast<Tensor&>(self);
  const Tensor value = tensor_from(number, std::nullopt, x.device());
  if (!is_complex(x.dtype()))
    throw Error(Code::invalid,
                std::string("[fill_] a complex number for a tensor of ") + dtype_name(x.dtype()) + ": give a real number");
  return written(self, [value](Tensor& into) { into.copy_(value); });
}
}  // namespace

void bind_in_place(nb::class_<Tensor>& tensor) {
  tensor
      .def(
          "copy_", copy_into, nb::arg("source"),
          "Broadcasts and casts source, and copies its elements into this tensor. Raises ValueError while recording if this "
          "is a leaf that requires a gradient.")
      .def(
          "fill_",
          [](nb::handle self, const NumberLike& number) {
            return written(self, [value = number.value](Tensor& x) { x.fill_(value); });
          },
          nb::arg("value"), "Sets every element to one number, in place.")
      .def("fill_", filled_with_complex, nb::arg("value"))
      .def(
          "zero_", [](nb::handle self) { return written(self, [](Tensor& x) { x.fill_(0); }); },
          "Sets every element to 0, in place.")
      .def(
          "add_",
          [](nb::handle self, const Tensor& other, const NumberLike& alpha) {
            return written(self, [term = other, scale = alpha.value](Tensor& x) { x.add_(term, scale); });
          },
          nb::arg("other"), nb::arg("alpha") = 1, "Adds alpha * other, in place.")
      .def("add_", add_number<1>, nb::arg("other"), nb::kw_only(), nb::arg("alpha"))
      .def("sub_", add_number<-1>, nb::arg("other"), nb::kw_only(), nb::arg("alpha"), "Subtracts alpha * other, in place.")
      .def(
          "mul_",
          [](nb::handle self, const NumberLike& factor) {
            return written(self, [by = factor.value](Tensor& x) { x.mul_(by); });
          },
          nb::arg("factor"), "Multiplies by factor, in place.");
  bind_drawn(tensor);
}

}  // namespace plugrad::python
