// Functions of two operands in PyTorch's common dtype. Numbers stay numbers: they are immediates of kernels, not uploads.
#pragma once
#include <ATen/native/TypeProperties.h>
#include <bridge/tensors.hpp>
#include <plugrad/ops/factories.hpp>

namespace plugrad_torch {

// A number as a tensor of rank 0, where a function takes tensors only.
inline const P& as_tensor(const P& x, const auto&) { return x; }
inline P as_tensor(Number x, const P& like) { return plugrad::full(Shape{}, x, like.dtype(), like.device()); }

// f(a, b) on tensors and numbers, in the dtype of at::result_type(a, b). One of both is a tensor of a device.
template <class F> P promoted(const T& a, const T& b, F f) {
  const ScalarType common = at::result_type(a, b);
  if (is_number(b)) return f(over(a, common), number_of(b.item()));
  if (is_number(a)) return f(number_of(a.item()), over(b, common));
  return f(over(a, common), over(b, common));
}

using OfTensors = P (*)(const P&, const P&);
using OfNumber = P (*)(const P&, Number);
using OfFirstNumber = P (*)(Number, const P&);
// The overloads of a function of plugrad; a number becomes a tensor where an overload is missing.
template <OfTensors kTensors, OfNumber kNumber = nullptr, OfFirstNumber kFirst = nullptr> struct Function {
  P operator()(const P& x, const P& y) const { return kTensors(x, y); }
  P operator()(const P& x, Number y) const {
    if constexpr (kNumber != nullptr) return kNumber(x, y);
    else return kTensors(x, as_tensor(y, x));
  }
  P operator()(Number x, const P& y) const {
    if constexpr (kFirst != nullptr) return kFirst(x, y);
    else return kTensors(as_tensor(x, y), y);
  }
};
// As Function, where the operands may change places: a function that commutes, or a comparison and its mirror image.
template <OfTensors kTensors, OfNumber kNumber, OfNumber kMirrored = kNumber> struct Symmetric {
  P operator()(const P& x, const P& y) const { return kTensors(x, y); }
  P operator()(const P& x, Number y) const { return kNumber(x, y); }
  P operator()(Number x, const P& y) const { return kMirrored(y, x); }
};

template <class F> P promoted(const T& a, const T& b) { return promoted(a, b, F()); }

}  // namespace plugrad_torch
