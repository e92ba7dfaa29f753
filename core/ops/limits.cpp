// Elementary functions, continued where their formula divides by 0.
#include <core/ops/native_or.hpp>
#include <core/ops/wide.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/integers.hpp>
#include <plugrad/ops/logic.hpp>
#include <plugrad/ops/powers.hpp>
#include <plugrad/ops/rounding.hpp>
#include <plugrad/ops/special.hpp>
#include <plugrad/ops/trigonometry.hpp>

#include <limits>
#include <numbers>

namespace plugrad {

namespace {
// A function of pi times the distance of x from the nearest whole number, with the sign for an odd number: pi x itself is
// rounded.
Tensor of_half_turns(const Tensor& x, Tensor (*function)(const Tensor&)) {
  const Tensor nearest = round(x), size = function(mul(sub(x, nearest), std::numbers::pi));
  return where(eq(remainder(nearest, 2), 0), size, neg(size));
}

Tensor sinc_of(const Tensor& x) {
  const Tensor is_zero = eq(x, 0);
  return where(is_zero, 1, div(of_half_turns(x, sin), mul(where(is_zero, 1, x), std::numbers::pi)));
}

Tensor sinc_of_complex(const Tensor& x) {
  const Tensor is_zero = eq(x, 0), angle = mul(where(is_zero, 1, x), std::numbers::pi);
  return where(is_zero, 1, div(sin(angle), angle));
}

// (cos(pi x) - sinc(x)) / x, near 0 as the sum of (-1)^k pi^2k 2k / (2k + 1)! x^(2k - 1).
Tensor slope_of_sinc(const Tensor& x, const Tensor& y) {
  static constexpr double kSeries[] = {-3.2898681336964528729,      3.2469697011334145745,      -1.1445109447325052822,
                                       0.20918278254123840404,      -0.023460810354558236375,   0.0017811455163728520442,
                                       -0.000097662231263189326643, 4.0499478466192442422e-6,   -1.3148481279991994635e-7,
                                       3.4330769499642866037e-9,    -7.3658937770969467111e-11, 1.3217901389162317156e-12};
  const Tensor is_near = lt(abs(x), 0.5), far = where(is_near, 1, x);
  const Tensor near = mul(x, polynomial(mul(x, x), kSeries));
  return where(is_near, near, div(sub(of_half_turns(far, cos), y), far));
}
}  // namespace

Tensor sinc(const Tensor& x) {
  static constexpr auto kRule =
      rule("sinc", gradient<kInput0, kOutput>(
                       [](const Tensor& grad, const Tensor& x, const Tensor& y) { return mul(grad, slope_of_sinc(x, y)); }));
  if (x.defined() && is_complex(x.dtype())) return sinc_of_complex(x);
  return differentiable(kRule, in_wide("sinc", x, sinc_of), x);
}

Tensor entr(const Tensor& x) {
  static constexpr auto kRule =
      rule("entr", gradient<kInput0>([](const Tensor& grad, const Tensor& x) { return mul(grad, sub(-1, log(x))); }));
  const auto formula = [](const Tensor& wide) {
    const Tensor product = neg(mul(wide, log(where(eq(wide, 0), 1, wide))));
    return where(lt(wide, 0), -std::numeric_limits<double>::infinity(), product);
  };
  return differentiable(kRule, in_wide("entr", x, formula), x);
}

Tensor xlog1py(const Tensor& a, const Tensor& b) {
  static constexpr auto kRule =
      rule("xlog1py", gradient<kInput0, kInput1>([](const Tensor& grad, const Tensor& x, const Tensor& y) {
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
