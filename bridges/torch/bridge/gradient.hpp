// Gradients by plugrad's own autograd, for functions whose gradient has no function.
#pragma once
#include <bridge/tensors.hpp>
#include <plugrad/autograd/autograd.hpp>

namespace plugrad_torch {

// The gradient of f at x: the product of `grad`, which has the shape of f(x), with f's Jacobian.
template <class F> P gradient_of(const P& x, const P& grad, F f) {
  const plugrad::EnableGrad recorded;
  P leaf = x.detach();
  leaf.requires_grad_();
  const P y = f(leaf);
  return plugrad::grad({y}, {leaf}, {.seeds = {plugrad::cast(grad, y.dtype())}})[0];
}

}  // namespace plugrad_torch
