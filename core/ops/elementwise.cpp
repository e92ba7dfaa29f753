#include <plugrad/ops/elementwise.hpp>

#include <core/ops/autocast_rules.hpp>
#include <core/ops/run.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/complex.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/integers.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/views.hpp>

#include <cmath>

namespace plugrad {
namespace {
constexpr auto kPass = gradient([](const Tensor& grad) { return grad; });
constexpr auto kNegate = gradient([](const Tensor& grad) { return neg(grad); });

// Operands are together. Bools are computed as integers, and the result is a bool again: + and maximum are "or", * and
// minimum are "and". Their difference has no such meaning.
[[gnu::cold]] Tensor of_bools(Op op, const Tensor& a, const Tensor& b) {
  if (op == Op::SUB) throw_dtype(op, PLUGRAD_BOOL, "numbers; to see where bools differ, use ne");
  return cast(binary(op, cast(a, DType::i64), cast(b, DType::i64), PLUGRAD_I64), DType::boolean);
}
template <Op kOp> [[gnu::always_inline]] inline Tensor arithmetic(const Tensor& a, const Tensor& b) {
  if (is_boolean(dtype_of(a))) [[unlikely]]
    return of_bools(kOp, a, b);
  return binary(kOp, a, b, dtype_of(a));
}
// A whole number keeps the dtype of integers. The operands are not floating, so nothing is recorded.
[[gnu::cold]] Tensor integers_with_number(Op op, const Tensor& a, Number b) {
  const Tensor x = promoted(a, b);
  return binary_number(op, x, b, dtype_of(x));
}
[[gnu::cold]] Tensor integers_with_number(Op op, Number a, const Tensor& b) {
  const Tensor x = promoted(b, a);
  return binary_number(op, a, x, dtype_of(x));
}
inline Tensor with_number(Op op, const Tensor& a, Number b) {
  require(op, a);
  if (!is_inexact(dtype_of(a))) [[unlikely]]
    return integers_with_number(op, a, b);
  return binary_number(op, a, b, dtype_of(a));
}
inline Tensor with_number(Op op, Number a, const Tensor& b) {
  require(op, b);
  if (!is_inexact(dtype_of(b))) [[unlikely]]
    return integers_with_number(op, a, b);
  return binary_number(op, a, b, dtype_of(b));
}
}  // namespace

// --- Arithmetic.

Tensor add(const Tensor& a, const Tensor& b) {
  if (!is_together(a, b)) [[unlikely]]
    return promoted("add", a, b, add);
  static constexpr auto kRule = rule("+", kPass, kPass);
  return differentiable(kRule, arithmetic<Op::ADD>(a, b), a, b);
}
Tensor add(const Tensor& a, Number b) {
  static constexpr auto kRule = rule("+", kPass);
  return differentiable(kRule, with_number(Op::ADD, a, b), a);
}

Tensor sub(const Tensor& a, const Tensor& b) {
  if (!is_together(a, b)) [[unlikely]]
    return promoted("sub", a, b, sub);
  static constexpr auto kRule = rule("-", kPass, kNegate);
  return differentiable(kRule, arithmetic<Op::SUB>(a, b), a, b);
}
Tensor sub(const Tensor& a, Number b) {
  static constexpr auto kRule = rule("-", kPass);
  return differentiable(kRule, with_number(Op::SUB, a, b), a);
}
Tensor sub(Number a, const Tensor& b) {
  static constexpr auto kRule = rule("-", kNegate);
  return differentiable(kRule, with_number(Op::SUB, a, b), b);
}

Tensor mul(const Tensor& a, const Tensor& b) {
  if (!is_together(a, b)) [[unlikely]]
    return promoted("mul", a, b, mul);
  static constexpr auto kRule =
      rule("*", gradient<kInput1>([](const Tensor& grad, const Tensor& other) { return mul(grad, other); }),
           gradient<kInput0>([](const Tensor& grad, const Tensor& other) { return mul(grad, other); }));
  return differentiable(kRule, arithmetic<Op::MUL>(a, b), a, b);
}
Tensor mul(const Tensor& a, Number b) {
  static constexpr auto kRule =
      rule("*", gradient<kPayload>([](const Tensor& grad, Number factor) { return mul(grad, factor); }));
  return differentiable(kRule, b, with_number(Op::MUL, a, b), a);
}

namespace {
// The gradient of the divisor, input kInput.
template <Use kInput>
constexpr auto kDivisor = gradient<kInput, kOutput>([](const Tensor& grad, const Tensor& divisor, const Tensor& quotient) {
  return neg(div(mul(grad, quotient), divisor));
});
}  // namespace

Tensor div(const Tensor& a, const Tensor& b) {
  static constexpr auto kRule =
      rule("/", gradient<kInput1>([](const Tensor& grad, const Tensor& divisor) { return div(grad, divisor); }),
           kDivisor<kInput1>);
  if (!is_together(a, b)) [[unlikely]]
    return promoted("div", a, b, div);
  if (!is_inexact(dtype_of(a))) [[unlikely]]
    return div(promoted_to_floating(a), promoted_to_floating(b));
  return differentiable(kRule, binary(Op::DIV, a, b, dtype_of(a)), a, b);
}
Tensor div(const Tensor& a, Number b) {
  static constexpr auto kRule =
      rule("/", gradient<kPayload>([](const Tensor& grad, Number divisor) { return div(grad, divisor); }));
  require(Op::DIV, a);
  if (!is_inexact(dtype_of(a))) [[unlikely]]
    return div(promoted_to_floating(a), b);
  return differentiable(kRule, b, with_number(Op::DIV, a, b), a);
}
Tensor div(Number a, const Tensor& b) {
  static constexpr auto kRule = rule("/", kDivisor<kInput0>);
  require(Op::DIV, b);
  if (!is_inexact(dtype_of(b))) [[unlikely]]
    return div(a, promoted_to_floating(b));
  return differentiable(kRule, with_number(Op::DIV, a, b), b);
}

// --- Powers.

namespace {
// d a^b / da = b a^(b - 1), and 0 where b is 0: the formula would be 0 * inf at a = 0.
constexpr auto kPowBase = gradient<kInput0, kInput1>([](const Tensor& grad, const Tensor& a, const Tensor& b) {
  return mul(grad, where(eq(b, 0), 0, mul(b, pow(a, sub(b, 1)))));
});
// d a^b / db = a^b ln a, and 0 where a is 0 and b is not negative. There ln 1 replaces ln 0, because the second derivative
// would multiply its infinity by 0.
constexpr auto kPowExponent =
    gradient<kInput0, kInput1, kOutput>([](const Tensor& grad, const Tensor& a, const Tensor& b, const Tensor& power) {
      const DType dtype = part_of(a.dtype());
      const Tensor at_zero = mul(cast(eq(a, 0), dtype), cast(ge(real(b), 0), dtype));
      return mul(grad, mul(power, log(where(gt(at_zero, 0), 1, a))));
    });
constexpr auto kPowToNumber = gradient<kInput0, kPayload>([](const Tensor& grad, const Tensor& a, double b) {
  if (b == 0) return zeros_like(a);
  if (b == 1) return grad;
  if (b == 2) return mul(grad, mul(a, 2));
  return mul(grad, mul(pow(a, b - 1), b));
});
constexpr auto kPowOfNumber =
    gradient<kInput0, kOutput, kPayload>([](const Tensor& grad, const Tensor& b, const Tensor& power, double a) {
      if (a != 0) return mul(grad, mul(power, std::log(a)));
      Tensor slope;  // 0 or infinite, so a constant
      {
        const NoGrad constant;
        slope = where(ge(b, 0), 0, mul(power, std::log(a)));
      }
      return mul(grad, slope);
    });
}  // namespace

namespace {
[[noreturn]] void refuse_negative_exponent(const std::string& power) {
  throw Error(Code::invalid, "[pow] an integer to " + power +
                                 " is no integer: cast the tensor to a floating dtype, or write the power as a fraction");
}
// a^b for integers and a whole b by repeated squaring; wraps.
Tensor integer_power(const Tensor& a, int64_t b) {
  if (b < 0) refuse_negative_exponent("the power " + std::to_string(b));
  Tensor power = ones_like(a), square = a;
  for (; b > 0; b >>= 1) {
    if (b & 1) power = mul(power, square);
    if (b > 1) square = mul(square, square);
  }
  return power;
}
// The same for exponents from 0 to `most` in a tensor of the base's dtype.
Tensor integer_power(const Tensor& a, const Tensor& b, int64_t most) {
  Tensor power = expand(ones_like(b), broadcast_shapes(a.shape(), b.shape())), square = a;
  for (int64_t bit = 1; most > 0; most >>= 1, bit *= 2) {
    power = where(ne(bitwise_and(b, bit), 0), mul(power, square), power);
    if (most > 1) square = mul(square, square);
  }
  return power;
}
// 1 / a^-b truncated, for negative exponents: they are refused where elements may be read.
Tensor truncated_power(const Tensor& a, const Tensor& b) {
  const Tensor is_odd = ne(bitwise_and(b, 1), 0);
  return where(eq(a, 1), 1, where(eq(a, -1), where(is_odd, a, 1), zeros_like(a)));
}
int64_t largest(DType dtype) {
  const int bits = 8 * static_cast<int>(element_size(static_cast<uint8_t>(dtype))) - (dtype == DType::u8 ? 0 : 1);
  return static_cast<int64_t>((uint64_t{1} << bits) - 1);
}
// Waits for the largest and the smallest of the exponents. A compiled step computes with all bits that they may have.
Tensor integer_power(const Tensor& a, const Tensor& b) {
  if (is_boolean(dtype_of(a))) return integer_power(cast(a, DType::i64), cast(b, DType::i64));
  if (!b.count()) return integer_power(a, b, 0);
  if (observe::hides_elements())
    return where(lt(b, 0), truncated_power(a, b), integer_power(a, maximum(b, 0), largest(b.dtype())));
  if (min(b).item<int64_t>() < 0) refuse_negative_exponent("a negative power");
  return integer_power(a, b, max(b).item<int64_t>());
}
}  // namespace

Tensor pow(const Tensor& a, const Tensor& b) {
  static constexpr auto kRule = rule("**", kPowBase, kPowExponent);
  if (autocasting()) [[unlikely]]
    return in_f32([](const Tensor& x, const Tensor& y) { return pow(x, y); }, a, b);
  if (!is_together(a, b)) [[unlikely]]
    return promoted("pow", a, b, pow);
  if (!is_inexact(dtype_of(a))) [[unlikely]]
    return integer_power(a, b);
  return differentiable(kRule, binary(Op::POW, a, b, dtype_of(a)), a, b);
}
Tensor pow(const Tensor& a, Number b) {
  static constexpr auto kRule = rule("**", kPowToNumber);
  if (autocasting()) [[unlikely]]
    return in_f32([b](const Tensor& x) { return pow(x, b); }, a);
  require(Op::POW, a);
  if (!is_inexact(dtype_of(a))) [[unlikely]] {
    const Tensor x = promoted(a, b);
    return is_inexact(x.dtype()) ? pow(x, b) : integer_power(x, b.integer());
  }
  return differentiable(kRule, b.real(), with_number(Op::POW, a, b), a);
}
Tensor pow(Number a, const Tensor& b) {
  static constexpr auto kRule = rule("**", kPowOfNumber);
  if (autocasting()) [[unlikely]]
    return in_f32([a](const Tensor& x) { return pow(a, x); }, b);
  require(Op::POW, b);
  if (is_complex(dtype_of(b))) [[unlikely]]
    return pow(scalar(a, b.dtype(), b.device()), b);
  if (!is_inexact(dtype_of(b))) [[unlikely]] {
    if (a.floating()) return pow(a, promoted_to_floating(b));
    return pow(scalar(a, promote_number(b.dtype(), false), b.device()), b);
  }
  return differentiable(kRule, a.real(), with_number(Op::POW, a, b), b);
}

// --- Maximum and minimum. Equal operands get half of the gradient each.

namespace {
// 1 where this operand was chosen, 1/2 where both are equal, 0 elsewhere. A constant for gradients.
template <class Other> Tensor chosen(const Tensor& mine, const Other& other, bool larger) {
  const NoGrad constant;
  const Tensor wins = cast(larger ? gt(mine, other) : lt(mine, other), mine.dtype());
  return add(wins, mul(cast(eq(mine, other), mine.dtype()), 0.5));
}
// The gradient of operand kMine; kOther is the second operand.
template <bool kLarger, Use kMine, Use kOther>
constexpr auto kChosen = gradient<kMine, kOther>(
    [](const Tensor& grad, const Tensor& mine, const Tensor& other) { return mul(grad, chosen(mine, other, kLarger)); });
template <bool kLarger>
constexpr auto kChosenBesideNumber = gradient<kInput0, kPayload>(
    [](const Tensor& grad, const Tensor& mine, Number other) { return mul(grad, chosen(mine, other, kLarger)); });
}  // namespace

Tensor maximum(const Tensor& a, const Tensor& b) {
  if (!is_together(a, b)) [[unlikely]]
    return promoted("maximum", a, b, maximum);
  static constexpr auto kRule = rule("maximum", kChosen<true, kInput0, kInput1>, kChosen<true, kInput1, kInput0>);
  return differentiable(kRule, arithmetic<Op::MAXIMUM>(a, b), a, b);
}
Tensor maximum(const Tensor& a, Number b) {
  static constexpr auto kRule = rule("maximum", kChosenBesideNumber<true>);
  return differentiable(kRule, b, with_number(Op::MAXIMUM, a, b), a);
}
Tensor minimum(const Tensor& a, const Tensor& b) {
  if (!is_together(a, b)) [[unlikely]]
    return promoted("minimum", a, b, minimum);
  static constexpr auto kRule = rule("minimum", kChosen<false, kInput0, kInput1>, kChosen<false, kInput1, kInput0>);
  return differentiable(kRule, arithmetic<Op::MINIMUM>(a, b), a, b);
}
Tensor minimum(const Tensor& a, Number b) {
  static constexpr auto kRule = rule("minimum", kChosenBesideNumber<false>);
  return differentiable(kRule, b, with_number(Op::MINIMUM, a, b), a);
}
}  // namespace plugrad
