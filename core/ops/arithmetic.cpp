#include <plugrad/ops/arithmetic.hpp>

#include <core/ops/argument.hpp>
#include <core/ops/infinity.hpp>
#include <core/ops/run.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/integers.hpp>
#include <plugrad/ops/logic.hpp>
#include <plugrad/ops/powers.hpp>
#include <plugrad/ops/rounding.hpp>
#include <plugrad/ops/special_values.hpp>

#include <cmath>
#include <numbers>

namespace plugrad {
namespace {
DType floating_dtype(const char* name, const Tensor& a, const Tensor& b) {
  require_real(name, a);
  require_real(name, b);
  return floating_type(promote_types(a.dtype(), b.dtype()));
}

// Operands of a common floating dtype.
bool is_ready(const Tensor& a, const Tensor& b) { return is_together(a, b) && is_floating(dtype_of(a)); }
Tensor made_ready(const char* name, const Tensor& a, const Tensor& b, BinaryFunction f) {
  const DType dtype = floating_dtype(name, a, b);
  if (&device_of(a) != &device_of(b)) throw_not_together(name, a, b);
  return f(cast(a, dtype), cast(b, dtype));
}

// f of both, in f32 at least; unrecorded.
template <class F> Tensor in_wide(const Tensor& a, const Tensor& b, F f) {
  const NoGrad unrecorded;
  return cast(f(at_least_f32(a), at_least_f32(b)), a.dtype());
}

// A number as a tensor beside x.
Tensor beside(Number number, const Tensor& x) {
  return scalar(number, promote_number(x.dtype(), number.floating()), x.device());
}
Tensor times(const Tensor& x, Number factor) { return !factor.floating() && factor.integer() == 1 ? x : mul(x, factor); }
// b times a factor, in the dtype of its sum with a.
Tensor times_beside(const char* name, const Tensor& a, const Tensor& b, Number factor) {
  require_defined(a, name);
  require_defined(b, name);
  return times(cast(b, promote_types(a.dtype(), b.dtype())), factor);
}
}  // namespace

Tensor add(const Tensor& a, const Tensor& b, Number alpha) { return add(a, times_beside("add", a, b, alpha)); }
Tensor sub(const Tensor& a, const Tensor& b, Number alpha) { return sub(a, times_beside("sub", a, b, alpha)); }

Tensor rsub(const Tensor& a, const Tensor& b, Number alpha) { return sub(b, a, alpha); }
Tensor rsub(const Tensor& a, Number b, Number alpha) { return sub(b, times(a, alpha)); }
Tensor ldexp(const Tensor& a, const Tensor& b) {
  const DType dtype = floating_dtype("ldexp", a, b);
  return cast(mul(a, pow(2, at_least_f32(cast(b, dtype)))), dtype);
}

Tensor div(const Tensor& a, const Tensor& b, std::optional<RoundingMode> rounding_mode) {
  if (!rounding_mode) return div(a, b);
  if (rounding_mode == RoundingMode::floor) return floor_divide(a, b);
  require_defined(a, "div");
  require_defined(b, "div");
  if (is_floating(promote_types(a.dtype(), b.dtype()))) return trunc(div(a, b));
  return floor_divide(sub(a, fmod(a, b)), b);  // a division without a rest
}
Tensor div(const Tensor& a, Number b, std::optional<RoundingMode> rounding_mode) {
  require_defined(a, "div");
  return rounding_mode ? div(a, beside(b, a), rounding_mode) : div(a, b);
}

// --- Interpolation. Beyond the middle it starts from the end b, so that weight 1 gives b.

Tensor lerp(const Tensor& a, const Tensor& b, double weight) {
  require_inexact("lerp", a);
  require_inexact("lerp", b);
  const Tensor x = at_least_f32(a), y = at_least_f32(b), distance = sub(y, x);
  const Tensor out = std::abs(weight) < 0.5 ? add(x, mul(distance, weight)) : sub(y, mul(distance, 1 - weight));
  return cast(out, promote_types(a.dtype(), b.dtype()));
}
Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& weight) {
  for (const Tensor* each : {&a, &b, &weight}) require_inexact("lerp", *each);
  const Tensor x = at_least_f32(a), y = at_least_f32(b), w = at_least_f32(weight), distance = sub(y, x);
  const Tensor out = where(lt(abs(w), 0.5), add(x, mul(distance, w)), sub(y, mul(distance, sub(1, w))));
  return cast(out, promote_types(promote_types(a.dtype(), b.dtype()), weight.dtype()));
}

// --- Exponentials and logarithms.

namespace {
// a - b, but 0 for equal infinities.
Tensor difference(const Tensor& a, const Tensor& b) { return where(eq(a, b), 0, sub(a, b)); }
}  // namespace

Tensor logaddexp(const Tensor& a, const Tensor& b) {
  static constexpr auto kRule =
      rule("logaddexp", gradient<kInput0, kInput1>([](const Tensor& grad, const Tensor& x, const Tensor& y) {
             return mul(grad, sigmoid(difference(x, y)));
           }),
           gradient<kInput0, kInput1>(
               [](const Tensor& grad, const Tensor& x, const Tensor& y) { return mul(grad, sigmoid(difference(y, x))); }));
  if (!is_ready(a, b)) return made_ready("logaddexp", a, b, logaddexp);
  const auto sum = [](const Tensor& x, const Tensor& y) {
    return add(maximum(x, y), log1p(exp(neg(abs(difference(x, y))))));
  };
  return differentiable(kRule, in_wide(a, b, sum), a, b);
}

Tensor logaddexp2(const Tensor& a, const Tensor& b) {
  static constexpr auto kRule =
      rule("logaddexp2", gradient<kInput0, kInput1>([](const Tensor& grad, const Tensor& x, const Tensor& y) {
             return mul(grad, sigmoid(mul(difference(x, y), std::numbers::ln2)));
           }),
           gradient<kInput0, kInput1>([](const Tensor& grad, const Tensor& x, const Tensor& y) {
             return mul(grad, sigmoid(mul(difference(y, x), std::numbers::ln2)));
           }));
  if (!is_ready(a, b)) return made_ready("logaddexp2", a, b, logaddexp2);
  const auto sum = [](const Tensor& x, const Tensor& y) {
    return add(maximum(x, y), mul(log1p(exp2(neg(abs(difference(x, y))))), std::numbers::log2e));
  };
  return differentiable(kRule, in_wide(a, b, sum), a, b);
}

Tensor xlogy(const Tensor& a, const Tensor& b) {
  static constexpr auto kRule = rule(
      "xlogy", gradient<kInput0, kInput1>([](const Tensor& grad, const Tensor& x, const Tensor& y) {
        return xlogy(where(logical_and(eq(x, 0), le(y, 0)), 0, grad), y);
      }),
      gradient<kInput0, kInput1>([](const Tensor& grad, const Tensor& x, const Tensor& y) { return div(mul(grad, x), y); }));
  if (!is_ready(a, b)) return made_ready("xlogy", a, b, xlogy);
  const auto product = [](const Tensor& x, const Tensor& y) {
    return where(logical_and(eq(x, 0), eq(y, y)), 0, mul(x, log(y)));
  };
  return differentiable(kRule, in_wide(a, b, product), a, b);
}
Tensor xlogy(const Tensor& a, Number b) {
  require_defined(a, "xlogy");
  return xlogy(a, beside(b, a));
}
Tensor xlogy(Number a, const Tensor& b) {
  require_defined(b, "xlogy");
  return xlogy(beside(a, b), b);
}

namespace {
Tensor in_f64(const Tensor& x) {
  require_defined(x, "float_power");
  return cast(x, is_complex(x.dtype()) ? DType::c128 : DType::f64);
}
}  // namespace

Tensor float_power(const Tensor& a, const Tensor& b) { return pow(in_f64(a), in_f64(b)); }
Tensor float_power(const Tensor& a, Number b) { return pow(in_f64(a), b); }
Tensor float_power(Number a, const Tensor& b) { return pow(a, in_f64(b)); }

Tensor hypot(const Tensor& a, const Tensor& b) {
  static constexpr auto kRule =
      rule("hypot", gradient<kInput0, kOutput>([](const Tensor& grad, const Tensor& x, const Tensor& length) {
             return mul(grad, div(x, length));
           }),
           gradient<kInput1, kOutput>(
               [](const Tensor& grad, const Tensor& y, const Tensor& length) { return mul(grad, div(y, length)); }));
  if (!is_ready(a, b)) return made_ready("hypot", a, b, hypot);
  const auto length = [](const Tensor& x, const Tensor& y) {
    const Tensor p = abs(x), q = abs(y), larger = maximum(p, q), ratio = div(minimum(p, q), larger);
    const Tensor scaled = mul(larger, sqrt(add(mul(ratio, ratio), 1)));
    const Tensor infinite = logical_or(eq(p, kInfinity), eq(q, kInfinity));
    return where(infinite, kInfinity, where(eq(larger, 0), 0, scaled));
  };
  return differentiable(kRule, in_wide(a, b, length), a, b);
}

// --- Signs and choices.

Tensor copysign(const Tensor& a, const Tensor& b) {
  if (!is_ready(a, b)) return made_ready("copysign", a, b, copysign);
  const Tensor size = abs(a);
  return where(signbit(b), neg(size), size);
}
Tensor copysign(const Tensor& a, Number b) {
  require_defined(a, "copysign");
  require_real("copysign", a);
  const Tensor size = abs(promoted_to_floating(a));
  return std::signbit(b.real()) ? neg(size) : size;
}

Tensor heaviside(const Tensor& x, const Tensor& values) {
  require_defined(x, "heaviside");
  require_defined(values, "heaviside");
  const NoGrad constant;
  const DType dtype = promote_types(x.dtype(), values.dtype());
  const Tensor numbers = cast(x.detach(), dtype);
  return where(eq(numbers, 0), cast(values.detach(), dtype), cast(gt(numbers, 0), dtype));
}

Tensor fmax(const Tensor& a, const Tensor& b) {
  if (!is_together(a, b)) return promoted("fmax", a, b, fmax);
  return where(isnan(b), a, where(isnan(a), b, maximum(a, b)));
}
Tensor fmin(const Tensor& a, const Tensor& b) {
  if (!is_together(a, b)) return promoted("fmin", a, b, fmin);
  return where(isnan(b), a, where(isnan(a), b, minimum(a, b)));
}

}  // namespace plugrad
