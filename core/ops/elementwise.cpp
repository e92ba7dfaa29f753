#include <plugrad/ops/elementwise.hpp>

#include <core/ops/run.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/factories.hpp>

#include <cmath>

namespace plugrad {
namespace {
using Grad = const Tensor&;
using S = const Saved&;

Tensor pass_grad(Grad grad, S) { return grad; }
Tensor negate_grad(Grad grad, S) { return neg(grad); }

template <Op kOp> [[gnu::always_inline]] inline Tensor arithmetic(const Tensor& a, const Tensor& b) {
  require_together(kOp, a, b);
  require_number_dtype(kOp, dtype_of(a));
  return binary(kOp, a, b, dtype_of(a));
}
inline Tensor with_number(Op op, const Tensor& a, Number b) {
  require(op, a);
  require_number_dtype(op, dtype_of(a));
  return binary_number(op, a, b, dtype_of(a));
}
inline Tensor with_number(Op op, Number a, const Tensor& b) {
  require(op, b);
  require_number_dtype(op, dtype_of(b));
  return binary_number(op, a, b, dtype_of(b));
}
// An op of one tensor and a number, which the gradient needs.
Tensor recorded_number(const Rule& rule, Number number, Tensor out, const Tensor& x) {
  return differentiable_with(rule, [&] { return new Extra{.number = number.real()}; }, std::move(out), x);
}
double number_of(S saved) { return saved.extra().number; }
}  // namespace

// --- Arithmetic.

Tensor add(const Tensor& a, const Tensor& b) {
  static constexpr Rule kRule{"+", {{{pass_grad}, {pass_grad}}}};
  return differentiable(kRule, arithmetic<Op::ADD>(a, b), a, b);
}
Tensor add(const Tensor& a, Number b) {
  static constexpr Rule kRule{"+", {{{pass_grad}}}};
  return differentiable(kRule, with_number(Op::ADD, a, b), a);
}

Tensor sub(const Tensor& a, const Tensor& b) {
  static constexpr Rule kRule{"-", {{{pass_grad}, {negate_grad}}}};
  return differentiable(kRule, arithmetic<Op::SUB>(a, b), a, b);
}
Tensor sub(const Tensor& a, Number b) {
  static constexpr Rule kRule{"-", {{{pass_grad}}}};
  return differentiable(kRule, with_number(Op::SUB, a, b), a);
}
Tensor sub(Number a, const Tensor& b) {
  static constexpr Rule kRule{"-", {{{negate_grad}}}};
  return differentiable(kRule, with_number(Op::SUB, a, b), b);
}

Tensor mul(const Tensor& a, const Tensor& b) {
  static constexpr Rule kRule{"*", {{{[](Grad grad, S saved) { return mul(grad, saved.input(1)); }, kInput1},
                                     {[](Grad grad, S saved) { return mul(grad, saved.input(0)); }, kInput}}}};
  return differentiable(kRule, arithmetic<Op::MUL>(a, b), a, b);
}
Tensor mul(const Tensor& a, Number b) {
  static constexpr Rule kRule{"*", {{{[](Grad grad, S saved) { return mul(grad, number_of(saved)); }}}}};
  return recorded_number(kRule, b, with_number(Op::MUL, a, b), a);
}

Tensor div(const Tensor& a, const Tensor& b) {
  static constexpr Rule kRule{
      "/",
      {{{[](Grad grad, S saved) { return div(grad, saved.input(1)); }, kInput1},
        {[](Grad grad, S saved) { return neg(div(mul(grad, saved.output()), saved.input(1))); }, kInput1 | kOutput}}}};
  require_together(Op::DIV, a, b);
  require_floating(Op::DIV, dtype_of(a));
  return differentiable(kRule, binary(Op::DIV, a, b, dtype_of(a)), a, b);
}
Tensor div(const Tensor& a, Number b) {
  static constexpr Rule kRule{"/", {{{[](Grad grad, S saved) { return div(grad, number_of(saved)); }}}}};
  require(Op::DIV, a);
  require_floating(Op::DIV, dtype_of(a));
  return recorded_number(kRule, b, with_number(Op::DIV, a, b), a);
}
Tensor div(Number a, const Tensor& b) {
  static constexpr Rule kRule{
      "/", {{{[](Grad grad, S saved) { return neg(div(mul(grad, saved.output()), saved.input())); }, kInput | kOutput}}}};
  require(Op::DIV, b);
  require_floating(Op::DIV, dtype_of(b));
  return differentiable(kRule, with_number(Op::DIV, a, b), b);
}

// --- Powers.

namespace {
// d a^b / da = b a^(b - 1), 0 where b is 0 (else 0 * inf at a = 0).
Tensor pow_base_grad(Grad grad, S saved) {
  const Tensor a = saved.input(0), b = saved.input(1);
  return mul(grad, where(eq(b, 0), 0, mul(b, pow(a, sub(b, 1)))));
}
// d a^b / db = a^b ln a, 0 where a is 0 and b is not negative: there ln 1 stands for ln 0, whose infinity would meet 0 in the
// second derivative.
Tensor pow_exponent_grad(Grad grad, S saved) {
  const Tensor a = saved.input(0), b = saved.input(1), out = saved.output();
  const Tensor at_zero = mul(cast(eq(a, 0), a.dtype()), cast(ge(b, 0), b.dtype()));
  return mul(grad, mul(out, log(where(gt(at_zero, 0), 1, a))));
}
Tensor pow_number_grad(Grad grad, S saved) {
  const double b = number_of(saved);
  if (b == 0) return zeros_like(saved.input());
  if (b == 1) return grad;
  if (b == 2) return mul(grad, mul(saved.input(), 2));
  return mul(grad, mul(pow(saved.input(), b - 1), b));
}
Tensor pow_of_number_grad(Grad grad, S saved) {
  const double a = number_of(saved);
  if (a != 0) return mul(grad, mul(saved.output(), std::log(a)));
  Tensor slope;  // 0 or infinite: a constant
  {
    const NoGrad constant;
    slope = where(ge(saved.input(), 0), 0, mul(saved.output(), std::log(a)));
  }
  return mul(grad, slope);
}
}  // namespace

Tensor pow(const Tensor& a, const Tensor& b) {
  static constexpr Rule kRule{"**", {{{pow_base_grad, kInput | kInput1}, {pow_exponent_grad, kInput | kInput1 | kOutput}}}};
  require_together(Op::POW, a, b);
  require_floating(Op::POW, dtype_of(a));
  return differentiable(kRule, binary(Op::POW, a, b, dtype_of(a)), a, b);
}
Tensor pow(const Tensor& a, Number b) {
  static constexpr Rule kRule{"**", {{{pow_number_grad, kInput}}}};
  require(Op::POW, a);
  require_floating(Op::POW, dtype_of(a));
  return recorded_number(kRule, b, with_number(Op::POW, a, b), a);
}
Tensor pow(Number a, const Tensor& b) {
  static constexpr Rule kRule{"**", {{{pow_of_number_grad, kInput | kOutput}}}};
  require(Op::POW, b);
  require_floating(Op::POW, dtype_of(b));
  return recorded_number(kRule, a, with_number(Op::POW, a, b), b);
}

// --- The larger, the smaller. Where both are equal each has half of the gradient.

namespace {
// 1 where this operand was chosen, 1/2 where both are equal, 0 elsewhere: a constant.
template <class Other> Tensor chosen(const Tensor& mine, const Other& other, bool larger) {
  const NoGrad constant;
  const Tensor wins = cast(larger ? gt(mine, other) : lt(mine, other), mine.dtype());
  return add(wins, mul(cast(eq(mine, other), mine.dtype()), 0.5));
}
template <bool kLarger, int kMine> Tensor extremum_grad(Grad grad, S saved) {
  return mul(grad, chosen(saved.input(kMine), saved.input(1 - kMine), kLarger));
}
template <bool kLarger> Tensor extremum_number_grad(Grad grad, S saved) {
  return mul(grad, chosen(saved.input(), Number(number_of(saved)), kLarger));
}
}  // namespace

Tensor maximum(const Tensor& a, const Tensor& b) {
  static constexpr Rule kRule{"maximum",
                              {{{extremum_grad<true, 0>, kInput | kInput1}, {extremum_grad<true, 1>, kInput | kInput1}}}};
  return differentiable(kRule, arithmetic<Op::MAXIMUM>(a, b), a, b);
}
Tensor maximum(const Tensor& a, Number b) {
  static constexpr Rule kRule{"maximum", {{{extremum_number_grad<true>, kInput}}}};
  return recorded_number(kRule, b, with_number(Op::MAXIMUM, a, b), a);
}
Tensor minimum(const Tensor& a, const Tensor& b) {
  static constexpr Rule kRule{"minimum",
                              {{{extremum_grad<false, 0>, kInput | kInput1}, {extremum_grad<false, 1>, kInput | kInput1}}}};
  return differentiable(kRule, arithmetic<Op::MINIMUM>(a, b), a, b);
}
Tensor minimum(const Tensor& a, Number b) {
  static constexpr Rule kRule{"minimum", {{{extremum_number_grad<false>, kInput}}}};
  return recorded_number(kRule, b, with_number(Op::MINIMUM, a, b), a);
}
}  // namespace plugrad
