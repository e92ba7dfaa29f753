#include <plugrad/ops/rounding.hpp>

#include <core/ops/argument.hpp>
#include <core/ops/run.hpp>
#include <core/tensor/tensor_transform.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/elementwise.hpp>

#include <cmath>

namespace plugrad {
namespace {
constexpr auto kFlat = rule("round", gradient([](const Tensor& grad) { return mul(grad, 0); }));

// From here on all numbers of the dtype are whole.
double whole_from(const Tensor& x) { return std::ldexp(1, dtype_info(dtype_of(x))->digits - 1); }

// Rounds numbers that may have a fraction and keeps the rest: whole numbers, infinities, NaN.
template <class Rounded> Tensor rounded(const char* name, const Tensor& x, Rounded function) {
  require_real(name, x);
  if (!is_floating(dtype_of(x))) return x;
  Tensor out;
  {
    const NoGrad unrecorded;
    const Tensor whole = function(x);
    const Tensor signed_zero = mul(x, 0);
    out = constant(where(lt(abs(x), whole_from(x)), where(eq(whole, 0), signed_zero, whole), x));
  }
  return differentiable(kFlat, std::move(out), x);
}

Tensor towards_zero(const Tensor& x) { return cast(cast(x, DType::i64), x.dtype()); }
}  // namespace

Tensor trunc(const Tensor& x) { return rounded("trunc", x, towards_zero); }

Tensor floor(const Tensor& x) {
  return rounded("floor", x, [](const Tensor& in) {
    const Tensor whole = towards_zero(in);
    return where(gt(whole, in), sub(whole, 1), whole);
  });
}

Tensor ceil(const Tensor& x) {
  return rounded("ceil", x, [](const Tensor& in) {
    const Tensor whole = towards_zero(in);
    return where(lt(whole, in), add(whole, 1), whole);
  });
}

Tensor round(const Tensor& x) {
  return rounded("round", x, [](const Tensor& in) {
    // The sum has no bits for a fraction, and it is rounded by IEEE 754: to the nearest, ties to even.
    const Tensor whole = sub(add(abs(in), whole_from(in)), whole_from(in));
    return where(lt(in, 0), neg(whole), whole);
  });
}

Tensor round(const Tensor& x, int64_t decimals) {
  if (!decimals || !x.defined() || !is_floating(x.dtype())) return round(x);
  const double power = std::pow(10.0, std::abs(static_cast<double>(decimals)));
  return rounded_once(x, [&](const Tensor& wide) {
    return decimals > 0 ? div(round(mul(wide, power)), power) : mul(round(div(wide, power)), power);
  });
}

}  // namespace plugrad
