// Ops missing on some devices: they run by the device's kernel if there is such a kernel, else as a composition of simpler
// ops. Both are unrecorded.
#pragma once
#include <core/ops/run.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/views.hpp>

#include <span>

namespace plugrad {

// x is floating.
template <class Compose> Tensor native_or_composed(Op op, const Tensor& x, Compose compose) {
  const Tensor out = empty_like(op, device_of(x), view_of(x), dtype_of(x));
  if (!view_of(x).count || try_run(op, {out}, {x})) return out;
  count_decomposition(x);
  const NoGrad unrecorded;
  return compose(x);
}

// Integers and bools become f32.
template <class Compose> Tensor native_or(Op op, const Tensor& x, Compose compose) {
  require(op, x);
  if (!is_inexact(dtype_of(x))) [[unlikely]]
    return native_or_composed(op, promoted_to_floating(x), compose);
  return native_or_composed(op, x, compose);
}

// The operands are together, and broadcast.
template <class Compose> Tensor native_or(Op op, const Tensor& a, const Tensor& b, Compose compose) {
  const NoGrad unrecorded;
  if (!same_shape(view_of(a), view_of(b))) {
    const Shape shape = shape_of(common_shape(op, view_of(a), view_of(b), device_of(a).info.alignment));
    return native_or(op, expand(a, shape), expand(b, shape), compose);
  }
  const Tensor out = empty_like(op, device_of(a), view_of(a), dtype_of(a));
  if (!view_of(a).count || try_run(op, {out}, {a, b})) return out;
  count_decomposition(a);
  return compose(a, b);
}

// Runs the fused kernel of a gradient if the device has it and no second derivative is needed, else its composition.
template <class Compose> Tensor fused(Op op, const Tensor& grad, const Tensor& value, Compose compose) {
  if (may_fuse() && same_shape(view_of(grad), view_of(value))) {
    const Tensor out = empty_like(op, device_of(value), view_of(value), dtype_of(value));
    if (!view_of(out).count || try_run(op, {out}, {grad, value})) return out;
    count_decomposition(grad);
  }
  return compose();
}

// c[0] + c[1] x + ...
inline Tensor polynomial(const Tensor& x, std::span<const double> c) {
  Tensor sum = add(mul(x, c[c.size() - 1]), c[c.size() - 2]);
  for (size_t i = c.size() - 2; i-- > 0;) sum = add(mul(sum, x), c[i]);
  return sum;
}

}  // namespace plugrad
