#include <core/io/onnx/ops/tables.hpp>
#include <plugrad/ops/arithmetic.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/integers.hpp>
#include <plugrad/ops/logic.hpp>
#include <plugrad/ops/powers.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/rounding.hpp>
#include <plugrad/ops/smooth.hpp>
#include <plugrad/ops/special_values.hpp>
#include <plugrad/ops/trigonometry.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/error.hpp>

#include <limits>

namespace plugrad::io::onnx {
namespace {

constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();

template <Tensor (*F)(const Tensor&)> Value unary(Call& c) { return c.like(F(c.tensor(0))); }
template <Tensor (*F)(const Tensor&)> Value test(Call& c) { return F(c.tensor(0)); }
// The second operand. Before version 7, its axes begin at the attribute `axis` of the first.
Tensor second(const Call& c) {
  const Tensor& b = c.tensor(1);
  if (c.opset() >= 7 || !c.integer("broadcast", 0) || !c.has_attribute("axis")) return b;
  Shape shape = b.shape();
  const int after = c.rank(0) - Call::axis(c.integer("axis", 0), c.rank(0)) - b.rank();
  for (int i = 0; i < after; ++i) shape.push_back(1);
  return reshape(b, shape);
}

template <Tensor (*F)(const Tensor&, const Tensor&)> Value binary(Call& c) { return c.like(F(c.tensor(0), second(c))); }

// Integers whose order as i64 is the order of uint64's bits.
Tensor ordered(const Call& c, size_t i) {
  return c.type(i) == ElementType::u64 ? bitwise_xor(c.tensor(i), kLowest) : c.tensor(i);
}
template <Tensor (*F)(const Tensor&, const Tensor&)> Value comparison(Call& c) {
  return F(ordered(c, 0), c.opset() < 7 ? second(c) : ordered(c, 1));
}

// The quotient of uint64: the dividend is halved, so that it is not negative as i64 (Hacker's Delight, 9-3).
Tensor unsigned_quotient(const Tensor& a, const Tensor& b) {
  const Tensor half = bitwise_and(bitwise_right_shift(a, 1), std::numeric_limits<int64_t>::max());
  const Tensor divisor = where(lt(b, 0), ones_like(b), b);
  const Tensor estimate = bitwise_left_shift(div(half, divisor, RoundingMode::trunc), 1);
  const Tensor rest = sub(a, mul(estimate, divisor));
  const auto above = [](const Tensor& x, const Tensor& y) {
    return cast(ge(bitwise_xor(x, kLowest), bitwise_xor(y, kLowest)), DType::i64);
  };
  return where(lt(b, 0), above(a, b), add(estimate, above(rest, divisor)));
}

Value divide(Call& c) {
  if (c.floating(0)) return c.like(div(c.tensor(0), second(c)));
  if (c.type(0) == ElementType::u64) return c.like(unsigned_quotient(c.tensor(0), c.tensor(1)));
  return c.like(div(c.tensor(0), second(c), RoundingMode::trunc));
}

Value modulo(Call& c) {
  const Tensor &a = c.tensor(0), &b = c.tensor(1);
  if (c.type(0) == ElementType::u64) return c.like(sub(a, mul(unsigned_quotient(a, b), b)));
  return c.like(c.integer("fmod", 0) ? fmod(a, b) : remainder(a, b));
}

Value power(Call& c) {
  const Tensor &x = c.tensor(0), y = second(c);
  if (!c.floating(0) && c.floating(1)) {  // towards zero, but a whole power may come out just below
    const Tensor power = pow(cast(x, DType::f64), cast(y, DType::f64)), whole = round(power);
    return c.like(where(le(abs(sub(power, whole)), mul(abs(whole), 1e-12)), whole, trunc(power)));
  }
  if (c.floating(0) && c.known(1) && y.count() == 1 && y.rank() <= x.rank()) return c.like(pow(x, c.real(size_t{1})));
  return c.like(pow(x, cast(y, x.dtype())));
}

Value shifted(Call& c) {
  const Tensor &x = c.tensor(0), &by = c.tensor(1);
  if (c.text("direction", "") == "LEFT") return c.like(bitwise_left_shift(x, by));
  if (c.type(0) != ElementType::u64) return c.like(bitwise_right_shift(x, by));
  const Tensor mask = bitwise_not(bitwise_left_shift(bitwise_left_shift(full_like(x, -1), sub(Number(63), by)), 1));
  return c.like(bitwise_and(bitwise_right_shift(x, by), mask));
}

template <Tensor (*F)(const Tensor&, const Tensor&)> Tensor of_all(const Call& c) {
  Tensor result = ordered(c, 0);
  for (size_t i = 1; i < c.inputs(); ++i) result = F(result, ordered(c, i));
  return c.type(0) == ElementType::u64 ? bitwise_xor(result, kLowest) : result;
}
template <Tensor (*F)(const Tensor&, const Tensor&)> Value many(Call& c) { return c.like(of_all<F>(c)); }

Value sum_of_all(Call& c) {
  Tensor result = c.tensor(0);
  for (size_t i = 1; i < c.inputs(); ++i) result = add(result, c.tensor(i));
  return c.like(result);
}

Value mean_of_all(Call& c) {
  Tensor result = c.tensor(0);
  for (size_t i = 1; i < c.inputs(); ++i) result = add(result, c.tensor(i));
  return c.like(div(result, static_cast<double>(c.inputs())));
}

Value is_infinite(Call& c) {
  const Tensor& x = c.tensor(0);
  const bool positive = c.integer("detect_positive", 1), negative = c.integer("detect_negative", 1);
  if (positive && negative) return isinf(x);
  if (!positive && !negative) return zeros(x.shape(), DType::boolean, c.device());
  return positive ? isposinf(x) : isneginf(x);
}

Value cast_to(Call& c, ElementType type) {
  const Tensor& x = c.tensor(0);
  if (type == c.type(0)) return Value(x, type);
  if (type == ElementType::boolean) return ne(x, 0);
  const DType dtype = carrier_of(type);
  if (c.type(0) == ElementType::u64 && is_floating(type)) {
    const Tensor wide = cast(x, DType::f64);
    return c.as(where(lt(x, 0), add(wide, 18446744073709551616.0), wide), type);
  }
  const auto range = range_of(type);
  if (!range) return Value(cast(x, dtype), type);
  return c.as(cast(c.floating(0) ? trunc(x) : x, DType::i64), type);
}

Value convert(Call& c) { return cast_to(c, static_cast<ElementType>(c.integer("to", 0))); }
Value convert_like(Call& c) { return cast_to(c, c.type(1)); }

Value choose(Call& c) { return c.like(where(c.tensor(0), c.tensor(1), c.tensor(2)), 1); }

constexpr Operator kElementwise[] = {
    {"Neg", unary<neg>},
    {"Abs", unary<abs>},
    {"Sign", unary<sign>},
    {"Sqrt", unary<sqrt>},
    {"Exp", unary<exp>},
    {"Log", unary<log>},
    {"Erf", unary<erf>},
    {"Sin", unary<sin>},
    {"Cos", unary<cos>},
    {"Tan", unary<tan>},
    {"Asin", unary<asin>},
    {"Acos", unary<acos>},
    {"Atan", unary<atan>},
    {"Sinh", unary<sinh>},
    {"Cosh", unary<cosh>},
    {"Asinh", unary<asinh>},
    {"Acosh", unary<acosh>},
    {"Atanh", unary<atanh>},
    {"Floor", unary<floor>},
    {"Ceil", unary<ceil>},
    {"Round", unary<round>},
    {"Reciprocal", unary<reciprocal>},
    {"Not", test<logical_not>},
    {"IsNaN", test<isnan>},
    {"IsInf", is_infinite},
    {"BitwiseNot", unary<bitwise_not>},
    {"Add", binary<add>},
    {"Sub", binary<sub>},
    {"Mul", binary<mul>},
    {"Div", divide},
    {"Mod", modulo},
    {"Pow", power},
    {"Equal", comparison<eq>},
    {"Less", comparison<lt>},
    {"LessOrEqual", comparison<le>},
    {"Greater", comparison<gt>},
    {"GreaterOrEqual", comparison<ge>},
    {"And", comparison<logical_and>},
    {"Or", comparison<logical_or>},
    {"Xor", comparison<logical_xor>},
    {"BitwiseAnd", binary<bitwise_and>},
    {"BitwiseOr", binary<bitwise_or>},
    {"BitwiseXor", binary<bitwise_xor>},
    {"BitShift", shifted},
    {"Max", many<maximum>},
    {"Min", many<minimum>},
    {"Sum", sum_of_all},
    {"Mean", mean_of_all},
    {"Where", choose},
    {"Cast", convert},
    {"CastLike", convert_like},
};
}  // namespace

std::span<const Operator> elementwise_operators() { return kElementwise; }

}  // namespace plugrad::io::onnx
