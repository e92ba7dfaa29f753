#include <plugrad/ops/integers.hpp>

#include <core/ops/argument.hpp>
#include <core/ops/native_or.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/logic.hpp>
#include <plugrad/ops/rounding.hpp>

#include <limits>

namespace plugrad {
namespace {
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int kBits = 64;

// --- Compositions in i64, bit by bit, for devices without these ops. Magnitudes are kept as negative numbers: i64 has no
// positive number for the magnitude of the smallest integer.

using BinaryComposition = Tensor (*)(const Tensor& a, const Tensor& b);
Tensor in_i64(const Tensor& a, const Tensor& b, BinaryComposition compose) {
  return cast(compose(cast(a, DType::i64), cast(b, DType::i64)), a.dtype());
}
int64_t negative_power(int bit) { return bit == kBits - 1 ? kLeast : -(int64_t{1} << bit); }

// Removes 2^bit from a magnitude below 2^(bit + 1). Returns true where the bit was set.
Tensor take_bit(Tensor& magnitude, int bit) {
  const Tensor held = le(magnitude, negative_power(bit));
  magnitude = where(held, sub(magnitude, negative_power(bit)), magnitude);
  return held;
}
Tensor magnitude_of(const Tensor& x) { return where(gt(x, 0), neg(x), x); }

// Long division. With magnitudes R of the rest and D of the divisor, 2 R + bit >= D is tested as R <= D - R + bit, without
// overflow.
Tensor composed_quotient(const Tensor& a, const Tensor& b) {
  const Tensor divisor = magnitude_of(b);
  Tensor dividend = magnitude_of(a), rest = zeros_like(a), quotient = zeros_like(a);
  for (int i = kBits - 1; i >= 0; --i) {
    const Tensor bit = cast(take_bit(dividend, i), DType::i64), needed = add(sub(divisor, rest), bit);
    const Tensor fits = le(rest, needed);
    rest = where(fits, sub(rest, needed), sub(add(rest, rest), bit));
    quotient = add(add(quotient, quotient), cast(fits, DType::i64));
  }
  const Tensor is_negative = ne(lt(a, 0), lt(b, 0));
  return where(eq(b, 0), 0, where(is_negative, neg(quotient), quotient));
}

// The bits set by `combine` from the bits of a and b.
Tensor by_bits(const Tensor& a, const Tensor& b, Tensor (*combine)(const Tensor& a, const Tensor& b)) {
  const auto low_bits = [](const Tensor& x) { return neg(where(lt(x, 0), sub(x, kLeast), x)); };
  Tensor left = low_bits(a), right = low_bits(b);
  Tensor all = mul(cast(combine(lt(a, 0), lt(b, 0)), DType::i64), kLeast);
  for (int i = kBits - 2; i >= 0; --i) {
    const Tensor bit_a = take_bit(left, i), bit_b = take_bit(right, i);
    all = sub(all, mul(cast(combine(bit_a, bit_b), DType::i64), negative_power(i)));
  }
  return all;
}

Tensor composed_left_shift(const Tensor& a, const Tensor& b) {
  Tensor shifted = zeros_like(a), power = a;
  for (int i = 0; i < kBits; ++i) {
    shifted = where(eq(b, i), power, shifted);
    power = add(power, power);
  }
  return shifted;
}
// Rounding -1 - x down instead of a negative x: the quotient rounds towards zero.
Tensor composed_right_shift(const Tensor& a, const Tensor& b) {
  const Tensor is_negative = lt(a, 0), size = where(is_negative, sub(-1, a), a);
  const Tensor is_part = logical_and(ge(b, 0), lt(b, kBits - 1));
  const Tensor divisor = composed_left_shift(ones_like(a), where(is_part, b, 0));
  const Tensor shifted = where(is_part, composed_quotient(size, divisor), 0);
  return where(is_negative, sub(-1, shifted), shifted);
}

Tensor integer_quotient(const Tensor& a, const Tensor& b) {
  return native_or(Op::QUOTIENT, a, b, [](const Tensor& x, const Tensor& y) { return in_i64(x, y, composed_quotient); });
}
// Exact only where the quotient and its product with b are.
Tensor composed_fmod(const Tensor& a, const Tensor& b) {
  if (!is_floating(a.dtype())) return sub(a, mul(b, integer_quotient(a, b)));
  const Tensor rest = sub(a, mul(b, trunc(div(a, b)))), size = abs(b);
  const Tensor folded = where(lt(mul(rest, sign(a)), 0), add(rest, mul(sign(a), size)), rest);
  const Tensor below = where(ge(abs(folded), size), sub(folded, mul(sign(a), size)), folded);
  return where(logical_and(isinf(b), isfinite(a)), a, where(eq(below, 0), mul(a, 0), below));
}

// --- Operands.

// A number as a tensor beside x, in the dtype of an op on both.
Tensor beside(const Tensor& x, Number number, const char* name) {
  require_defined(x, name);
  return scalar(number, promote_number(x.dtype(), number.floating()), x.device());
}

// Whole numbers of a common dtype; bools become i64.
bool is_plain(const Tensor& a, const Tensor& b) {
  return is_together(a, b) && dtype_of(a) != PLUGRAD_BOOL && !is_complex(dtype_of(a));
}
Tensor with_i64_for_bools(const char* name, const Tensor& a, const Tensor& b, BinaryFunction f) {
  if (!is_together(a, b)) return promoted(name, a, b, f);
  require_real(name, a);
  return f(cast(a, DType::i64), cast(b, DType::i64));
}

Tensor remainder_towards_zero(const Tensor& a, const Tensor& b) { return native_or(Op::FMOD, a, b, composed_fmod); }
// True where a rest with the dividend's sign must move to the divisor's side of 0.
Tensor has_other_sign(const Tensor& rest, const Tensor& divisor) {
  return logical_and(ne(rest, 0), ne(lt(rest, 0), lt(divisor, 0)));
}
}  // namespace

// --- Division.

namespace {
Tensor floor_of_integers(const Tensor& a, const Tensor& b) {
  const Tensor lower = has_other_sign(remainder_towards_zero(a, b), b);
  return sub(integer_quotient(a, b), cast(lower, a.dtype()));
}
// As Python's float_divmod: the quotient of a less its rest is whole but for rounding.
Tensor floor_of_reals(const Tensor& a, const Tensor& b) {
  const Tensor rest = remainder_towards_zero(a, b), whole = div(sub(a, rest), b);
  const Tensor quotient = where(has_other_sign(rest, b), sub(whole, 1), whole), down = floor(quotient);
  const Tensor nearest = where(gt(sub(quotient, down), 0.5), add(down, 1), down), plain = div(a, b);
  return where(eq(b, 0), plain, where(eq(quotient, 0), mul(plain, 0), nearest));
}
}  // namespace

Tensor floor_divide(const Tensor& a, const Tensor& b) {
  static constexpr auto kRule = rule("//", gradient([](const Tensor& grad) { return mul(grad, 0); }),
                                     gradient([](const Tensor& grad) { return mul(grad, 0); }));
  if (!is_plain(a, b)) return with_i64_for_bools("floor_divide", a, b, floor_divide);
  Tensor out;
  {
    const NoGrad unrecorded;
    out = is_floating(a.dtype()) ? floor_of_reals(a, b) : floor_of_integers(a, b);
  }
  return differentiable(kRule, std::move(out), a, b);
}
Tensor floor_divide(const Tensor& a, Number b) { return floor_divide(a, beside(a, b, "floor_divide")); }
Tensor floor_divide(Number a, const Tensor& b) { return floor_divide(beside(b, a, "floor_divide"), b); }

Tensor remainder(const Tensor& a, const Tensor& b) {
  static constexpr auto kRule = rule("%", gradient([](const Tensor& grad) { return grad; }),
                                     gradient<kInput0, kInput1>([](const Tensor& grad, const Tensor& a, const Tensor& b) {
                                       return neg(mul(grad, floor_divide(a, b)));
                                     }));
  if (!is_plain(a, b)) return with_i64_for_bools("remainder", a, b, remainder);
  Tensor out;
  {
    const NoGrad unrecorded;
    const Tensor rest = remainder_towards_zero(a, b);
    out = where(has_other_sign(rest, b), add(rest, b), rest);
  }
  return differentiable(kRule, std::move(out), a, b);
}
Tensor remainder(const Tensor& a, Number b) { return remainder(a, beside(a, b, "remainder")); }
Tensor remainder(Number a, const Tensor& b) { return remainder(beside(b, a, "remainder"), b); }

Tensor fmod(const Tensor& a, const Tensor& b) {
  static constexpr auto kRule = rule("fmod", gradient([](const Tensor& grad) { return grad; }),
                                     gradient<kInput0, kInput1>([](const Tensor& grad, const Tensor& a, const Tensor& b) {
                                       return neg(mul(grad, trunc(div(a, b))));
                                     }));
  if (!is_plain(a, b)) return with_i64_for_bools("fmod", a, b, fmod);
  return differentiable(kRule, remainder_towards_zero(a, b), a, b);
}
Tensor fmod(const Tensor& a, Number b) { return fmod(a, beside(a, b, "fmod")); }

// --- Bits.

namespace {
using OfBools = Tensor (*)(const Tensor& a, const Tensor& b);

Tensor bits(const char* name, Op op, OfBools logical, const Tensor& a, const Tensor& b, BinaryFunction self) {
  if (!is_together(a, b)) return promoted(name, a, b, self);
  if (is_boolean(dtype_of(a))) return logical(a, b);
  require_integer(name, a, "an operand");
  return native_or(op, a, b, [logical](const Tensor& x, const Tensor& y) {
    return cast(by_bits(cast(x, DType::i64), cast(y, DType::i64), logical), x.dtype());
  });
}
Tensor shifted(const char* name, Op op, BinaryComposition compose, const Tensor& a, const Tensor& b, BinaryFunction self) {
  if (!is_plain(a, b)) return with_i64_for_bools(name, a, b, self);
  require_integer(name, a, "an operand");
  return native_or(op, a, b, [compose](const Tensor& x, const Tensor& y) { return in_i64(x, y, compose); });
}
}  // namespace

Tensor bitwise_and(const Tensor& a, const Tensor& b) {
  return bits("bitwise_and", Op::BITWISE_AND, logical_and, a, b, bitwise_and);
}
Tensor bitwise_and(const Tensor& a, Number b) { return bitwise_and(a, beside(a, b, "bitwise_and")); }
Tensor bitwise_or(const Tensor& a, const Tensor& b) {
  return bits("bitwise_or", Op::BITWISE_OR, logical_or, a, b, bitwise_or);
}
Tensor bitwise_or(const Tensor& a, Number b) { return bitwise_or(a, beside(a, b, "bitwise_or")); }
Tensor bitwise_xor(const Tensor& a, const Tensor& b) {
  return bits("bitwise_xor", Op::BITWISE_XOR, logical_xor, a, b, bitwise_xor);
}
Tensor bitwise_xor(const Tensor& a, Number b) { return bitwise_xor(a, beside(a, b, "bitwise_xor")); }

Tensor bitwise_not(const Tensor& x) {
  require_defined(x, "bitwise_not");
  if (x.dtype() == DType::boolean) return logical_not(x);
  require_integer("bitwise_not", x, "an operand");
  return sub(-1, x);
}

Tensor bitwise_left_shift(const Tensor& a, const Tensor& b) {
  return shifted("bitwise_left_shift", Op::BITWISE_LEFT_SHIFT, composed_left_shift, a, b, bitwise_left_shift);
}
Tensor bitwise_left_shift(const Tensor& a, Number b) { return bitwise_left_shift(a, beside(a, b, "bitwise_left_shift")); }
Tensor bitwise_left_shift(Number a, const Tensor& b) { return bitwise_left_shift(beside(b, a, "bitwise_left_shift"), b); }
Tensor bitwise_right_shift(const Tensor& a, const Tensor& b) {
  return shifted("bitwise_right_shift", Op::BITWISE_RIGHT_SHIFT, composed_right_shift, a, b, bitwise_right_shift);
}
Tensor bitwise_right_shift(const Tensor& a, Number b) { return bitwise_right_shift(a, beside(a, b, "bitwise_right_shift")); }
Tensor bitwise_right_shift(Number a, const Tensor& b) { return bitwise_right_shift(beside(b, a, "bitwise_right_shift"), b); }

}  // namespace plugrad
