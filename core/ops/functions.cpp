// Elementwise functions of one tensor.
#include <plugrad/ops/elementwise.hpp>

#include <core/ops/run.hpp>
#include <plugrad/autograd/autograd.hpp>

namespace plugrad {
namespace {
using Grad = const Tensor&;
using S = const Saved&;

inline Tensor floating(Op op, const Tensor& x) {
  require(op, x);
  require_floating(op, dtype_of(x));
  return unary(op, x);
}

// The fused kernel of a gradient where the device has it and no second derivative is wanted, else its composition.
template <class Compose> Tensor fused(Op op, const Tensor& grad, const Tensor& value, Compose compose) {
  if (may_fuse() && same_shape(view_of(grad), view_of(value))) {
    const Tensor out = empty_like(device_of(value), view_of(value), dtype_of(value));
    if (!view_of(out).count || try_run(op, {out}, {grad, value})) return out;
    count_decomposition(grad);
  }
  return compose();
}

// An op of a device that has it, else its decomposition, which is not recorded itself.
template <class Compose> Tensor native_or(Op op, const Tensor& x, Compose compose) {
  require(op, x);
  require_floating(op, dtype_of(x));
  const Tensor out = empty_like(device_of(x), view_of(x), dtype_of(x));
  if (!view_of(x).count || try_run(op, {out}, {x})) return out;
  count_decomposition(x);
  const NoGrad unrecorded;
  return compose();
}
}  // namespace

Tensor neg(const Tensor& x) {
  static constexpr Rule kRule{"neg", {{{[](Grad grad, S) { return neg(grad); }}}}};
  require(Op::NEG, x);
  require_number_dtype(Op::NEG, dtype_of(x));
  return differentiable(kRule, unary(Op::NEG, x), x);
}

Tensor abs(const Tensor& x) {
  static constexpr Rule kRule{"abs", {{{[](Grad grad, S saved) { return mul(grad, sign(saved.input())); }, kInput}}}};
  require(Op::ABS, x);
  require_number_dtype(Op::ABS, dtype_of(x));
  return differentiable(kRule, unary(Op::ABS, x), x);
}

Tensor sign(const Tensor& x) {
  static constexpr Rule kRule{"sign", {{{[](Grad grad, S) { return mul(grad, 0); }}}}};
  require(Op::SIGN, x);
  require_number_dtype(Op::SIGN, dtype_of(x));
  return differentiable(kRule, unary(Op::SIGN, x), x);
}

Tensor sqrt(const Tensor& x) {
  static constexpr Rule kRule{"sqrt", {{{[](Grad grad, S saved) { return div(grad, mul(saved.output(), 2)); }, kOutput}}}};
  return differentiable(kRule, floating(Op::SQRT, x), x);
}

Tensor exp(const Tensor& x) {
  static constexpr Rule kRule{"exp", {{{[](Grad grad, S saved) { return mul(grad, saved.output()); }, kOutput}}}};
  return differentiable(kRule, floating(Op::EXP, x), x);
}

Tensor log(const Tensor& x) {
  static constexpr Rule kRule{"log", {{{[](Grad grad, S saved) { return div(grad, saved.input()); }, kInput}}}};
  return differentiable(kRule, floating(Op::LOG, x), x);
}

Tensor tanh(const Tensor& x) {
  static constexpr Rule kRule{"tanh", {{{[](Grad grad, S saved) {
    const Tensor y = saved.output();
    return fused(Op::TANH_BACKWARD, grad, y, [&] { return mul(grad, sub(1, mul(y, y))); });
  }, kOutput}}}};
  return differentiable(kRule, floating(Op::TANH, x), x);
}

Tensor sigmoid(const Tensor& x) {
  static constexpr Rule kRule{"sigmoid", {{{[](Grad grad, S saved) {
    const Tensor y = saved.output();
    return fused(Op::SIGMOID_BACKWARD, grad, y, [&] { return mul(grad, mul(y, sub(1, y))); });
  }, kOutput}}}};
  return differentiable(kRule, native_or(Op::SIGMOID, x, [&] { return div(1, add(exp(neg(x)), 1)); }), x);
}

Tensor relu(const Tensor& x) {
  static constexpr Rule kRule{"ReLU", {{{[](Grad grad, S saved) {
    const Tensor input = saved.input();
    return fused(Op::RELU_BACKWARD, grad, input, [&] { return where(le(input, 0), 0, grad); });
  }, kInput}}}};
  return differentiable(kRule, native_or(Op::RELU, x, [&] { return where(lt(x, 0), 0, x); }), x);
}

}  // namespace plugrad
