// Elementwise functions of one tensor.
#include <plugrad/ops/elementwise.hpp>

#include <core/ops/run.hpp>
#include <plugrad/autograd/autograd.hpp>

#include <numbers>
#include <span>

namespace plugrad {
namespace {
inline Tensor floating(Op op, const Tensor& x) {
  require(op, x);
  require_floating(op, dtype_of(x));
  return unary(op, x);
}

// Runs the fused kernel of a gradient if the device has it and no second derivative is needed, else its composition.
template <class Compose> Tensor fused(Op op, const Tensor& grad, const Tensor& value, Compose compose) {
  if (may_fuse() && same_shape(view_of(grad), view_of(value))) {
    const Tensor out = empty_like(device_of(value), view_of(value), dtype_of(value));
    if (!view_of(out).count || try_run(op, {out}, {grad, value})) return out;
    count_decomposition(grad);
  }
  return compose();
}

// Runs an op if the device has it, else its decomposition, unrecorded: the op has a rule of its own.
template <class Compose> Tensor native_or(Op op, const Tensor& x, Compose compose) {
  require(op, x);
  require_floating(op, dtype_of(x));
  const Tensor out = empty_like(device_of(x), view_of(x), dtype_of(x));
  if (!view_of(x).count || try_run(op, {out}, {x})) return out;
  count_decomposition(x);
  const NoGrad unrecorded;
  return compose();
}
// c[0] + c[1] x + ...
Tensor polynomial(const Tensor& x, std::span<const double> c) {
  Tensor sum = add(mul(x, c[c.size() - 1]), c[c.size() - 2]);
  for (size_t i = c.size() - 2; i-- > 0;) sum = add(mul(sum, x), c[i]);
  return sum;
}

// Minimax fits: erf(x) / x - 1 in x^2 on [0, 1], and -ln(1 - erf(x)) on [1, 5.95], where erf(x) is 1 in double.
Tensor composed_erf(const Tensor& x) {
  static constexpr double kNear[] = {0.12837916709551256565,    -0.37612638903183519541,   0.11283791670944184793,
                                     -0.026866170643111481407,  0.0052239776061186138528,  -0.00085483259293221707276,
                                     0.00012055293577152761939, -1.4924712307185836806e-5, 1.6447131638251597496e-6,
                                     -1.6206314289113782329e-7, 1.3710982748678366599e-8,  -7.7794729484268154071e-10};
  static constexpr double kFar[] = {
      1.8161767786314725149e-6,   1.1283618233487701788,      0.63669674481281069549,     0.10256185658091168638,
      -0.018730107575585493723,   -0.00075985749501581819792, 0.0022707939769566749982,   -0.0010492101484064269116,
      0.00030602651367738618974,  -6.2214278570773073774e-5,  8.4375352422037476969e-6,   -5.8321545660853360057e-7,
      -2.5677032669791653512e-8,  1.0317393357919167019e-8,   -9.7394992719099554229e-10, 3.4725751618041984299e-11};
  const Tensor size = abs(x), near = add(x, mul(x, polynomial(mul(x, x), kNear)));
  const Tensor far = sub(1, exp(neg(polynomial(minimum(size, 5.95), kFar))));
  return where(lt(size, 1), near, mul(sign(x), far));
}
}  // namespace

Tensor neg(const Tensor& x) {
  static constexpr auto kRule = rule("neg", gradient([](const Tensor& grad) { return neg(grad); }));
  require(Op::NEG, x);
  require_number_dtype(Op::NEG, dtype_of(x));
  return differentiable(kRule, unary(Op::NEG, x), x);
}

Tensor abs(const Tensor& x) {
  static constexpr auto kRule =
      rule("abs", gradient<kInput0>([](const Tensor& grad, const Tensor& x) { return mul(grad, sign(x)); }));
  require(Op::ABS, x);
  require_number_dtype(Op::ABS, dtype_of(x));
  return differentiable(kRule, unary(Op::ABS, x), x);
}

Tensor sign(const Tensor& x) {
  static constexpr auto kRule = rule("sign", gradient([](const Tensor& grad) { return mul(grad, 0); }));
  require(Op::SIGN, x);
  require_number_dtype(Op::SIGN, dtype_of(x));
  return differentiable(kRule, unary(Op::SIGN, x), x);
}

Tensor sqrt(const Tensor& x) {
  static constexpr auto kRule =
      rule("sqrt", gradient<kOutput>([](const Tensor& grad, const Tensor& y) { return div(grad, mul(y, 2)); }));
  return differentiable(kRule, floating(Op::SQRT, x), x);
}

Tensor exp(const Tensor& x) {
  static constexpr auto kRule =
      rule("exp", gradient<kOutput>([](const Tensor& grad, const Tensor& y) { return mul(grad, y); }));
  return differentiable(kRule, floating(Op::EXP, x), x);
}

Tensor log(const Tensor& x) {
  static constexpr auto kRule =
      rule("log", gradient<kInput0>([](const Tensor& grad, const Tensor& x) { return div(grad, x); }));
  return differentiable(kRule, floating(Op::LOG, x), x);
}

Tensor tanh(const Tensor& x) {
  static constexpr auto kRule = rule("tanh", gradient<kOutput>([](const Tensor& grad, const Tensor& y) {
    return fused(Op::TANH_BACKWARD, grad, y, [&] { return mul(grad, sub(1, mul(y, y))); });
  }));
  return differentiable(kRule, floating(Op::TANH, x), x);
}

Tensor sigmoid(const Tensor& x) {
  static constexpr auto kRule = rule("sigmoid", gradient<kOutput>([](const Tensor& grad, const Tensor& y) {
    return fused(Op::SIGMOID_BACKWARD, grad, y, [&] { return mul(grad, mul(y, sub(1, y))); });
  }));
  return differentiable(kRule, native_or(Op::SIGMOID, x, [&] { return div(1, add(exp(neg(x)), 1)); }), x);
}

Tensor relu(const Tensor& x) {
  static constexpr auto kRule = rule("ReLU", gradient<kInput0>([](const Tensor& grad, const Tensor& x) {
    return fused(Op::RELU_BACKWARD, grad, x, [&] { return where(le(x, 0), 0, grad); });
  }));
  return differentiable(kRule, native_or(Op::RELU, x, [&] { return where(lt(x, 0), 0, x); }), x);
}

Tensor erf(const Tensor& x) {
  static constexpr auto kRule = rule("erf", gradient<kInput0>([](const Tensor& grad, const Tensor& x) {
    return mul(grad, mul(exp(neg(mul(x, x))), 2 * std::numbers::inv_sqrtpi));
  }));
  return differentiable(kRule, native_or(Op::ERF, x, [&] { return composed_erf(x); }), x);
}

}  // namespace plugrad
