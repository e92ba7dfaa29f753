#include <plugrad/ops/activations.hpp>

#include <core/ops/argument.hpp>
#include <core/ops/autocast_rules.hpp>
#include <core/ops/backward.hpp>
#include <core/ops/native_or.hpp>
#include <core/ops/run.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/gradients.hpp>
#include <plugrad/ops/logic.hpp>
#include <plugrad/ops/powers.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/numbers.hpp>
#include <plugrad/sdk/functions.hpp>

#include <algorithm>
#include <utility>

namespace plugrad {

Tensor at_least_f32(const Tensor& x) { return is_floating(x.dtype()) ? cast(x, accumulator_of(x.dtype())) : x; }

namespace {
Tensor composed_softmax(const Tensor& x, int axis) {
  const NoGrad unrecorded;
  return rounded_once(x, [&](const Tensor& wide) { return exp(log_softmax(wide, axis)); });
}

constexpr auto softmax_grad = [](const Tensor& grad, const Tensor& y, int axis) {
  if (may_fuse() && y.count()) {
    const plugrad_axis attributes{sizeof attributes, axis};
    const Tensor out = empty_like(Op::SOFTMAX_BACKWARD, device_of(y), view_of(y), dtype_of(y));
    if (try_run(Op::SOFTMAX_BACKWARD, {out}, {grad, y}, attributes)) return out;
    count_decomposition(y);
  }
  return mul(y, sub(grad, sum(mul(grad, y), {axis}, true)));
};
}  // namespace

Tensor softmax_backward(const Tensor& grad, const Tensor& y, int axis) {
  return gradient_along("softmax_backward", grad, y, axis, softmax_grad);
}

Tensor softmax(const Tensor& x, int axis) {
  if (autocasting()) [[unlikely]]
    return in_f32(softmax, x, axis);
  static constexpr auto kRule = rule("softmax", gradient<kOutput, kPayload>(softmax_grad));
  require_floating("softmax", x);
  const int at = normal_axis(axis, std::max(1, x.rank()), "softmax");
  if (!x.rank()) return squeeze(softmax(unsqueeze(x, 0), 0), {0});
  const plugrad_axis attributes{sizeof attributes, at};
  Tensor out = empty_like(Op::SOFTMAX, device_of(x), view_of(x), dtype_of(x));
  if (x.count() && !try_run(Op::SOFTMAX, {out}, {x}, attributes)) {
    count_decomposition(x);
    out = composed_softmax(x, at);
  }
  return differentiable(kRule, at, std::move(out), x);
}

Tensor clamp_min(const Tensor& x, Number min) { return clamp(x, min); }
Tensor clamp_min(const Tensor& x, const Tensor& min) { return clamp(x, min); }
Tensor clamp_max(const Tensor& x, Number max) { return clamp(x, std::nullopt, max); }
Tensor clamp_max(const Tensor& x, const Tensor& max) { return clamp(x, Tensor(), max); }

// --- Gates: x s(x), with a distribution function s. Compositions of halves are rounded once.

namespace {
Tensor normal_below(const Tensor& x) { return mul(add(erf(mul(x, kRootHalf)), 1), 0.5); }
Tensor gelu_gate(const Tensor& x) { return sigmoid(mul(mul(x, add(mul(mul(x, x), kGeluCubic), 1)), 2 * kGeluScale)); }

// The op of x s(x), where x and the gate s are in f32 at least.
template <class Gate> Tensor gated(Op op, const Tensor& x, Gate gate) {
  return native_or(
      op, x, [&](const Tensor& in) { return rounded_once(in, [&](const Tensor& wide) { return mul(wide, gate(wide)); }); });
}
// The gradient of such an op, by its derivative.
template <class Derivative> Tensor sloped(Op op, const Tensor& grad, const Tensor& x, Derivative derivative) {
  return fused(op, grad, x, [&] {
    return rounded_once(x, [&](const Tensor& wide) { return mul(at_least_f32(grad), derivative(wide)); });
  });
}

constexpr auto silu_grad = [](const Tensor& grad, const Tensor& x) {
  return sloped(Op::SILU_BACKWARD, grad, x, [](const Tensor& wide) {
    const Tensor s = sigmoid(wide);
    return mul(s, add(mul(wide, sub(1, s)), 1));
  });
};
constexpr auto gelu_grad = [](const Tensor& grad, const Tensor& x) {
  return sloped(Op::GELU_BACKWARD, grad, x, [](const Tensor& wide) {
    const Tensor density = mul(exp(mul(mul(wide, wide), -0.5)), kRootTwoPi);
    return add(normal_below(wide), mul(wide, density));
  });
};
constexpr auto gelu_tanh_grad = [](const Tensor& grad, const Tensor& x) {
  return sloped(Op::GELU_TANH_BACKWARD, grad, x, [](const Tensor& wide) {
    const Tensor s = gelu_gate(wide), slope = mul(add(mul(mul(wide, wide), 3 * kGeluCubic), 1), 2 * kGeluScale);
    return mul(s, add(mul(mul(wide, sub(1, s)), slope), 1));
  });
};
}  // namespace

Tensor silu_backward(const Tensor& grad, const Tensor& x) {
  require_gradient_alike("silu_backward", grad, x);
  const WithoutGraph plainly;
  return silu_grad(grad, x);
}
Tensor gelu_backward(const Tensor& grad, const Tensor& x, Approximation approximate) {
  require_gradient_alike("gelu_backward", grad, x);
  const WithoutGraph plainly;
  return approximate == Approximation::none ? gelu_grad(grad, x) : gelu_tanh_grad(grad, x);
}

Tensor silu(const Tensor& x) {
  static constexpr auto kRule = rule("silu", gradient<kInput0>(silu_grad));
  if (x.defined() && is_complex(x.dtype())) return mul(x, sigmoid(x));
  require_floating("silu", x);
  return differentiable(kRule, gated(Op::SILU, x, [](const Tensor& wide) { return sigmoid(wide); }), x);
}

Tensor gelu(const Tensor& x, Approximation approximate) {
  static constexpr auto kExact = rule("gelu", gradient<kInput0>(gelu_grad));
  static constexpr auto kTanh = rule("gelu", gradient<kInput0>(gelu_tanh_grad));
  require_floating("gelu", x);
  if (approximate == Approximation::none) return differentiable(kExact, gated(Op::GELU, x, normal_below), x);
  return differentiable(kTanh, gated(Op::GELU_TANH, x, gelu_gate), x);
}

// --- Functions whose formulas lose digits near 0. Their gradients are written out, in accurate terms.

namespace {
struct Softplus {
  double beta, threshold;
};
Tensor computed_softplus(const Tensor& x, const Softplus& how) {
  const NoGrad unrecorded;
  const Tensor scaled = mul(at_least_f32(x), how.beta);
  const Tensor smooth = add(maximum(scaled, 0), log1p(exp(neg(abs(scaled)))));
  return cast(where(gt(scaled, how.threshold), at_least_f32(x), div(smooth, how.beta)), x.dtype());
}

Tensor computed_elu(const Tensor& x, double alpha) {
  const NoGrad unrecorded;
  const Tensor wide = at_least_f32(x);
  return cast(where(gt(wide, 0), wide, mul(expm1(minimum(wide, 0)), alpha)), x.dtype());
}
}  // namespace

Tensor softplus(const Tensor& x, double beta, double threshold) {
  if (autocasting()) [[unlikely]]
    return in_f32(softplus, x, beta, threshold);
  static constexpr auto kRule =
      rule("softplus", gradient<kInput0, kPayload>([](const Tensor& grad, const Tensor& x, const Softplus& how) {
             const Tensor scaled = mul(x, how.beta);
             return where(gt(scaled, how.threshold), grad, mul(grad, sigmoid(scaled)));
           }));
  require_floating("softplus", x);
  if (!(beta > 0)) refuse("softplus", "beta is " + number_text(beta) + ": it must be positive");
  const Softplus how{beta, threshold};
  return differentiable(kRule, how, computed_softplus(x, how), x);
}

Tensor elu(const Tensor& x, double alpha) {
  // The exponential of a positive x is not chosen, but may be infinite, and 0 * inf would reach the second derivative.
  static constexpr auto kRule =
      rule("elu", gradient<kInput0, kPayload>([](const Tensor& grad, const Tensor& x, double scale) {
             const Tensor positive = gt(x, 0);
             return where(positive, grad, mul(grad, mul(exp(where(positive, 0, x)), scale)));
           }));
  require_floating("elu", x);
  return differentiable(kRule, alpha, computed_elu(x, alpha), x);
}

Tensor leaky_relu(const Tensor& x, double negative_slope) {
  require_floating("leaky_relu", x);
  return where(gt(x, 0), x, mul(x, negative_slope));
}

// --- Limits.

Tensor hardtanh(const Tensor& x, double min_val, double max_val) {
  require_floating("hardtanh", x);
  if (!(min_val <= max_val))
    refuse("hardtanh", "min_val " + number_text(min_val) + " is above max_val " + number_text(max_val) +
                           ": give the smaller bound first");
  return where(le(x, min_val), min_val, where(ge(x, max_val), max_val, x));
}

namespace {
struct Bounds {
  std::optional<Number> min, max;
};
}  // namespace

Tensor clamp(const Tensor& x, std::optional<Number> min, std::optional<Number> max) {
  static constexpr auto kRule =
      rule("clamp", gradient<kInput0, kPayload>([](const Tensor& grad, const Tensor& x, const Bounds& bounds) {
             const Tensor above = bounds.min ? where(gt(x, *bounds.min), grad, 0) : grad;
             return bounds.max ? where(lt(x, *bounds.max), above, 0) : above;
           }));
  require_defined(x, "clamp");
  if (x.dtype() == DType::boolean) refuse("clamp", "x is bool, expected a dtype of numbers: cast it");
  if (!min && !max) refuse("clamp", "there is no bound: give min, max or both");
  const auto limited = [&] {
    const NoGrad unrecorded;
    const Tensor raised = min ? maximum(x, *min) : x;
    return max ? minimum(raised, *max) : raised;
  };
  return differentiable(kRule, Bounds{min, max}, limited(), x);
}

Tensor clamp(const Tensor& x, const Tensor& min, const Tensor& max) {
  require_defined(x, "clamp");
  if (!min.defined() && !max.defined()) refuse("clamp", "there is no bound: give min, max or both");
  if (!max.defined()) return maximum(x, min);
  if (!min.defined()) return minimum(x, max);
  const Tensor raised = where(logical_or(lt(x, min), isnan(min)), min, x);
  return where(logical_or(gt(raised, max), isnan(max)), max, raised);
}

}  // namespace plugrad
