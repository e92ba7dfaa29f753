#include <plugrad/ops/logic.hpp>

#include <core/ops/infinity.hpp>
#include <core/ops/run.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/complex.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/reduce.hpp>

namespace plugrad {
namespace {
Tensor truth(const char* name, const Tensor& x) {
  require_defined(x, name);
  return cast(x.detach(), DType::boolean);
}
Tensor everywhere(const Tensor& x, bool value) { return filled(device_of(x), view_of(x), PLUGRAD_BOOL, value); }
}  // namespace

Tensor logical_not(const Tensor& x) { return binary_number(Op::EQ, truth("logical_not", x), 0, PLUGRAD_BOOL); }
Tensor logical_and(const Tensor& a, const Tensor& b) { return where(truth("logical_and", a), truth("logical_and", b), 0); }
Tensor logical_or(const Tensor& a, const Tensor& b) { return where(truth("logical_or", a), 1, truth("logical_or", b)); }
Tensor logical_xor(const Tensor& a, const Tensor& b) { return ne(truth("logical_xor", a), truth("logical_xor", b)); }

Tensor isnan(const Tensor& x) {
  require_defined(x, "isnan");
  return is_inexact(x.dtype()) ? ne(x, x) : everywhere(x, false);
}
Tensor isinf(const Tensor& x) {
  require_defined(x, "isinf");
  const NoGrad unrecorded;
  if (is_complex(x.dtype())) return logical_or(isinf(real(x)), isinf(imag(x)));
  return is_floating(x.dtype()) ? eq(abs(x), kInfinity) : everywhere(x, false);
}
Tensor isfinite(const Tensor& x) {
  require_defined(x, "isfinite");
  const NoGrad unrecorded;
  if (is_complex(x.dtype())) return logical_and(isfinite(real(x)), isfinite(imag(x)));
  return is_floating(x.dtype()) ? lt(abs(x), kInfinity) : everywhere(x, true);
}

namespace {
// Of i64. f64 does not tell neighbours beyond 2^53 apart, so differences are taken before they become floats.
Tensor integers_are_close(const Tensor& a, const Tensor& b, double rtol, double atol) {
  const Tensor x = cast(a, DType::f64), y = cast(b, DType::f64), distance = abs(sub(x, y));
  const Tensor exact = cast(abs(sub(a, b)), DType::f64);  // it wraps where the distance is beyond 2^63
  return le(where(lt(distance, 0x1p62), exact, distance), add(mul(abs(y), rtol), atol));
}
}  // namespace

Tensor isclose(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
  require_defined(a, "isclose");
  require_defined(b, "isclose");
  const NoGrad unrecorded;
  const DType common = promote_types(a.dtype(), b.dtype()), dtype = accumulator_of(floating_type(common));
  if (!is_inexact(common)) return integers_are_close(cast(a, DType::i64), cast(b, DType::i64), rtol, atol);
  const Tensor x = cast(a, dtype), y = cast(b, dtype);
  // An infinite bound would make everything close.
  const Tensor near = logical_and(le(abs(sub(x, y)), add(mul(abs(y), rtol), atol)), isfinite(y));
  const Tensor close = logical_or(eq(x, y), near);
  return equal_nan ? logical_or(close, logical_and(isnan(x), isnan(y))) : close;
}

Tensor count_nonzero(const Tensor& x, const Shape& axes, bool keepdim) {
  return sum(truth("count_nonzero", x), axes, keepdim);
}
Tensor any(const Tensor& x, const Shape& axes, bool keepdim) { return gt(sum(truth("any", x), axes, keepdim), 0); }
Tensor all(const Tensor& x, const Shape& axes, bool keepdim) {
  return eq(sum(logical_not(truth("all", x)), axes, keepdim), 0);
}

}  // namespace plugrad
