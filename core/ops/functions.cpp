// Elementwise functions of a tensor.
#include <plugrad/ops/elementwise.hpp>

#include <core/ops/argument.hpp>
#include <core/ops/autocast_rules.hpp>
#include <core/ops/backward.hpp>
#include <core/ops/native_or.hpp>
#include <plugrad/ops/gradients.hpp>
#include <plugrad/sdk/functions.hpp>

#include <numbers>

namespace plugrad {
namespace {
// Integers and bools become f32.
[[gnu::noinline]] Tensor of_promoted(Op op, const Tensor& x) { return unary(op, promoted_to_floating(x)); }
[[gnu::always_inline]] inline Tensor floating(Op op, const Tensor& x) {
  require(op, x);
  if (!is_inexact(dtype_of(x))) [[unlikely]]
    return of_promoted(op, x);
  return unary(op, x);
}

Tensor composed_erf(const Tensor& x) {
  const Tensor size = abs(x), near = add(x, mul(x, polynomial(mul(x, x), kErfNear)));
  const Tensor far = sub(1, exp(neg(polynomial(minimum(size, kErfEnd), kErfFar))));
  return where(lt(size, 1), near, mul(sign(x), far));
}
[[gnu::noinline]] Tensor relu_of_others(const Tensor& x) {
  require_number_dtype(Op::RELU, dtype_of(x));
  return maximum(x, 0);
}
}  // namespace

Tensor neg(const Tensor& x) {
  static constexpr auto kRule = rule("neg", gradient([](const Tensor& grad) { return neg(grad); }));
  require(Op::NEG, x);
  require_number_dtype(Op::NEG, dtype_of(x));
  return differentiable(kRule, unary(Op::NEG, x), x);
}

namespace {
// Bools have neither a size nor a sign.
bool is_real_number(uint8_t dtype) { return !is_boolean(dtype) && !is_complex(dtype); }

[[gnu::cold]] Tensor size_of_other(Op op, const Tensor& x) {
  require_number_dtype(op, dtype_of(x));
  const Tensor size = empty_like(op, device_of(x), view_of(x), part_dtype(dtype_of(x)));
  if (view_of(x).count) run(op, {size}, {x});
  return size;
}
// x / |x|, and 0 at 0.
[[gnu::cold]] Tensor sign_of_other(Op op, const Tensor& x) {
  require_number_dtype(op, dtype_of(x));
  const Tensor size = abs(x);
  return div(x, where(eq(size, 0), 1, size));
}
}  // namespace

Tensor abs(const Tensor& x) {
  static constexpr auto kRule =
      for_complex(rule("abs", gradient<kInput0>([](const Tensor& grad, const Tensor& x) { return mul(grad, sign(x)); })));
  require(Op::ABS, x);
  return differentiable(kRule, is_real_number(dtype_of(x)) ? unary(Op::ABS, x) : size_of_other(Op::ABS, x), x);
}

Tensor sign(const Tensor& x) {
  static constexpr auto kRule = rule("sign", gradient([](const Tensor& grad) { return mul(grad, 0); }));
  require(Op::SIGN, x);
  if (!is_real_number(dtype_of(x))) [[unlikely]]
    return sign_of_other(Op::SIGN, x);
  return differentiable(kRule, unary(Op::SIGN, x), x);
}

Tensor sqrt(const Tensor& x) {
  static constexpr auto kRule =
      rule("sqrt", gradient<kOutput>([](const Tensor& grad, const Tensor& y) { return div(grad, mul(y, 2)); }));
  return differentiable(kRule, floating(Op::SQRT, x), x);
}

Tensor exp(const Tensor& x) {
  if (widens(x)) [[unlikely]]
    return in_f32(exp, x);
  static constexpr auto kRule =
      rule("exp", gradient<kOutput>([](const Tensor& grad, const Tensor& y) { return mul(grad, y); }));
  return differentiable(kRule, floating(Op::EXP, x), x);
}

Tensor log(const Tensor& x) {
  if (widens(x)) [[unlikely]]
    return in_f32(log, x);
  static constexpr auto kRule =
      rule("log", gradient<kInput0>([](const Tensor& grad, const Tensor& x) { return div(grad, x); }));
  return differentiable(kRule, floating(Op::LOG, x), x);
}

namespace {
constexpr auto tanh_grad = [](const Tensor& grad, const Tensor& y) {
  return fused(Op::TANH_BACKWARD, grad, y, [&] { return mul(grad, sub(1, mul(y, y))); });
};
constexpr auto sigmoid_grad = [](const Tensor& grad, const Tensor& y) {
  return fused(Op::SIGMOID_BACKWARD, grad, y, [&] { return mul(grad, mul(y, sub(1, y))); });
};
constexpr auto relu_grad = [](const Tensor& grad, const Tensor& x) {
  return fused(Op::RELU_BACKWARD, grad, x, [&] { return where(le(x, 0), 0, grad); });
};
}  // namespace

Tensor tanh_backward(const Tensor& grad, const Tensor& y) {
  require_gradient_alike("tanh_backward", grad, y);
  const WithoutGraph plainly;
  return tanh_grad(grad, y);
}
Tensor sigmoid_backward(const Tensor& grad, const Tensor& y) {
  require_gradient_alike("sigmoid_backward", grad, y);
  const WithoutGraph plainly;
  return sigmoid_grad(grad, y);
}
Tensor relu_backward(const Tensor& grad, const Tensor& x) {
  require_gradient_alike("relu_backward", grad, x);
  const WithoutGraph plainly;
  return relu_grad(grad, x);
}

Tensor tanh(const Tensor& x) {
  static constexpr auto kRule = rule("tanh", gradient<kOutput>(tanh_grad));
  return differentiable(kRule, floating(Op::TANH, x), x);
}

Tensor sigmoid(const Tensor& x) {
  static constexpr auto kRule = rule("sigmoid", gradient<kOutput>(sigmoid_grad));
  return differentiable(kRule, native_or(Op::SIGMOID, x, [](const Tensor& in) { return div(1, add(exp(neg(in)), 1)); }), x);
}

Tensor relu(const Tensor& x) {
  static constexpr auto kRule = rule("ReLU", gradient<kInput0>(relu_grad));
  require(Op::RELU, x);
  if (!is_floating(dtype_of(x))) [[unlikely]]
    return relu_of_others(x);
  const auto compose = [](const Tensor& in) { return where(lt(in, 0), 0, in); };
  return differentiable(kRule, native_or_composed(Op::RELU, x, compose), x);
}

Tensor erf(const Tensor& x) {
  static constexpr auto kRule = rule("erf", gradient<kInput0>([](const Tensor& grad, const Tensor& x) {
                                       return mul(grad, mul(exp(neg(mul(x, x))), 2 * std::numbers::inv_sqrtpi));
                                     }));
  require_real("erf", x);
  return differentiable(kRule, native_or(Op::ERF, x, composed_erf), x);
}

}  // namespace plugrad
