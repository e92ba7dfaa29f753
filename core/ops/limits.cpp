// Elementary functions that are continued where their formula divides by 0.
#include <core/ops/wide.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/logic.hpp>
#include <plugrad/ops/powers.hpp>
#include <plugrad/ops/special.hpp>
#include <plugrad/ops/trigonometry.hpp>

#include <limits>
#include <numbers>

namespace plugrad {

Tensor sinc(const Tensor& x) {
  require_defined(x, "sinc");
  const Tensor wide = at_least_f32(promoted_to_floating(x)), is_zero = eq(wide, 0);
  const Tensor angle = mul(where(is_zero, 1, wide), std::numbers::pi);
  return cast(where(is_zero, 1, div(sin(angle), angle)), floating_type(x.dtype()));
}

Tensor entr(const Tensor& x) {
  static constexpr auto kRule = rule("entr", gradient<kInput0>([](const Tensor& grad, const Tensor& x) {
                                       return mul(grad, sub(-1, log(x)));
                                     }));
  const auto formula = [](const Tensor& wide) {
    const Tensor product = neg(mul(wide, log(where(eq(wide, 0), 1, wide))));
    return where(lt(wide, 0), -std::numeric_limits<double>::infinity(), product);
  };
  return differentiable(kRule, in_wide("entr", x, formula), x);
}

Tensor xlog1py(const Tensor& a, const Tensor& b) {
  static constexpr auto kRule = rule(
      "xlog1py", gradient<kInput0, kInput1>([](const Tensor& grad, const Tensor& x, const Tensor& y) {
        return xlog1py(where(logical_and(eq(x, 0), le(y, -1)), 0, grad), y);
      }),
      gradient<kInput0, kInput1>(
          [](const Tensor& grad, const Tensor& x, const Tensor& y) { return div(mul(grad, x), add(y, 1)); }));
  require_defined(a, "xlog1py");
  require_defined(b, "xlog1py");
  if (&device_of(a) != &device_of(b)) throw_not_together("xlog1py", a, b);
  const DType dtype = floating_type(promote_types(a.dtype(), b.dtype()));
  if (a.dtype() != dtype || b.dtype() != dtype) return xlog1py(cast(a, dtype), cast(b, dtype));
  const auto product = [&] {
    const NoGrad unrecorded;
    const Tensor x = at_least_f32(a), y = at_least_f32(b);
    return cast(where(logical_and(eq(x, 0), eq(y, y)), 0, mul(x, log1p(y))), dtype);
  };
  return differentiable(kRule, product(), a, b);
}
Tensor xlog1py(const Tensor& a, Number b) {
  require_defined(a, "xlog1py");
  return xlog1py(a, scalar(b, promote_number(a.dtype(), b.floating()), a.device()));
}
Tensor xlog1py(Number a, const Tensor& b) {
  require_defined(b, "xlog1py");
  return xlog1py(scalar(a, promote_number(b.dtype(), a.floating()), b.device()), b);
}

}  // namespace plugrad
