// Copies of tensors with a replaced part.
#pragma once
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/assignment.hpp>
#include <plugrad/ops/elementwise.hpp>

namespace plugrad {

// Part: called with a tensor, it returns a view of a part of it.
template <class Part> Tensor unrecorded_part(const Tensor& x, const Part& part) {
  const NoGrad unrecorded;
  return part(x);
}

// Writes src in place of a part of x. While recording, x becomes the result of the write, as assign states.
template <class Part> void replace(Tensor& x, const Tensor& src, const Part& part) {
  const Tensor target = unrecorded_part(x, part);
  target.is_same(x) ? x.copy_(src) : assign(x, target, src);
}
template <class Part> void replace(Tensor& x, Number number, const Part& part) {
  const Tensor target = unrecorded_part(x, part);
  target.is_same(x) ? x.fill_(number) : assign(x, target, number);
}

// The same with a copy of x; returns the copy.
template <class Part> Tensor replaced(const Tensor& x, const Tensor& src, const Part& part) {
  Tensor out = clone(x);
  replace(out, src, part);
  return out;
}

}  // namespace plugrad
