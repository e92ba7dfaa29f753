// The tangents of ops. Ops that are compositions of others, with a kernel on some devices, have none: forward mode composes
// them.
#include <core/func/forward.hpp>

#include <core/autograd/sum.hpp>
#include <core/ops/run.hpp>
#include <plugrad/ops/complex.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/indexing.hpp>
#include <plugrad/ops/logic.hpp>
#include <plugrad/ops/powers.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/rounding.hpp>
#include <plugrad/ops/scatter.hpp>
#include <plugrad/ops/trigonometry.hpp>
#include <plugrad/ops/views.hpp>

#include <array>
#include <numbers>
#include <vector>

namespace plugrad::func {
namespace {
using All = std::vector<Tensor>;

// a + b, where an undefined tensor is zero.
Tensor sum_of(const Tensor& a, const Tensor& b) { return !a.defined() ? b : !b.defined() ? a : add(a, b); }
Tensor times(const Tensor& tangent, const Tensor& by) { return tangent.defined() ? mul(tangent, by) : tangent; }

// --- Linear ops.

// Linear in input kInput, with the other inputs constant.
template <size_t kInput> All linear(const ForwardCall& c) {
  All replaced(c.inputs.size());
  replaced[kInput] = c.tangents[kInput];
  return c.tangents[kInput].defined() ? c.again(replaced) : All();
}

// Linear in each of the first two inputs.
All bilinear(const ForwardCall& c) {
  Tensor total;
  for (size_t i = 0; i < 2; ++i) {
    if (!c.tangents[i].defined()) continue;
    All replaced(c.inputs.size());
    replaced[i] = c.tangents[i];
    total = sum_of(total, c.again(replaced)[0]);
  }
  return {total};
}

// A product of the first two inputs, and an added third one.
All product_and_sum(const ForwardCall& c) {
  Tensor total;
  for (size_t i = 0; i < 2; ++i) {
    if (!c.tangents[i].defined()) continue;
    All replaced(3);
    replaced[i] = c.tangents[i];
    replaced[2] = total.defined() || !c.tangents[2].defined() ? zeros_like(c.inputs[2]) : c.tangents[2];
    total = sum_of(total, c.again(replaced)[0]);
  }
  if (total.defined()) return {total};
  const Tensor& added = c.tangents[2];
  if (c.call.opcode == PLUGRAD_OP_MATMUL_ADD) return {added};
  Shape channels(std::vector<int64_t>(static_cast<size_t>(c.outputs[0].rank()), 1));
  channels[1] = added.count();
  return {expand(reshape(added, channels), c.outputs[0].shape())};
}

All copied(const ForwardCall& c) { return {c.tangents[0]}; }
All added(const ForwardCall& c) { return {sum_of(c.tangents[0], c.tangents[1])}; }
All subtracted(const ForwardCall& c) {
  if (!c.tangents[1].defined()) return {c.tangents[0]};
  return {c.tangents[0].defined() ? sub(c.tangents[0], c.tangents[1]) : neg(c.tangents[1])};
}
All negated(const ForwardCall& c) { return {neg(c.tangents[0])}; }

All chosen(const ForwardCall& c) {
  const Tensor &a = c.tangents[1], &b = c.tangents[2], &condition = c.inputs[0];
  if (!b.defined()) return {where(condition, a, 0)};
  return {a.defined() ? where(condition, a, b) : where(condition, 0, b)};
}

// Adds to its output: the tangent of what it adds.
All scattered(const ForwardCall& c) {
  if (!c.tangents[1].defined()) return {};
  const Tensor& out = c.outputs[0];
  Tensor sums = zeros(out.shape(), out.dtype(), out.device());
  run(Op::SCATTER_ADD, {sums}, {c.inputs[0], c.tangents[1]}, *static_cast<const plugrad_axis*>(c.call.attributes));
  return {sums};
}

All pooled(const ForwardCall& c) {
  const Tensor &values = c.outputs[0], &places = c.outputs[1];
  const Tensor flat = flatten(c.tangents[0], 2), taken = gather(flat, 2, flatten(places, 2));
  return {reshape(taken, values.shape())};
}

// --- Functions of one element.

template <class Slope> All pointwise(const ForwardCall& c, Slope slope) {
  return {mul(c.tangents[0], slope(c.inputs[0], c.outputs[0]))};
}
All square_root(const ForwardCall& c) { return {div(c.tangents[0], mul(c.outputs[0], 2))}; }
All absolute(const ForwardCall& c) {
  if (is_complex(c.inputs[0].dtype())) return {real(mul(c.tangents[0], conj(sign(c.inputs[0]))))};
  return pointwise(c, [](const Tensor& x, const Tensor&) { return sign(x); });
}
All exponential(const ForwardCall& c) {
  return pointwise(c, [](const Tensor&, const Tensor& y) { return y; });
}
All logarithm(const ForwardCall& c) { return {div(c.tangents[0], c.inputs[0])}; }
All hyperbolic_tangent(const ForwardCall& c) {
  return pointwise(c, [](const Tensor&, const Tensor& y) { return sub(1, mul(y, y)); });
}
All rectified(const ForwardCall& c) { return {where(le(c.inputs[0], 0), 0, c.tangents[0])}; }
All sigmoidal(const ForwardCall& c) {
  return pointwise(c, [](const Tensor&, const Tensor& y) { return mul(y, sub(1, y)); });
}
All error_function(const ForwardCall& c) {
  return pointwise(c, [](const Tensor& x, const Tensor&) { return mul(exp(neg(mul(x, x))), 2 * std::numbers::inv_sqrtpi); });
}
All sine(const ForwardCall& c) {
  return pointwise(c, [](const Tensor& x, const Tensor&) { return cos(x); });
}
All cosine(const ForwardCall& c) {
  return pointwise(c, [](const Tensor& x, const Tensor&) { return neg(sin(x)); });
}
All arc_tangent(const ForwardCall& c) { return {div(c.tangents[0], add(mul(c.inputs[0], c.inputs[0]), 1))}; }

// --- Functions of two elements.

All multiplied(const ForwardCall& c) {
  return {sum_of(times(c.tangents[0], c.inputs[1]), times(c.tangents[1], c.inputs[0]))};
}
All divided(const ForwardCall& c) {
  const Tensor direct = c.tangents[0].defined() ? div(c.tangents[0], c.inputs[1]) : Tensor();
  if (!c.tangents[1].defined()) return {direct};
  const Tensor inverse = div(mul(c.outputs[0], c.tangents[1]), c.inputs[1]);
  return {direct.defined() ? sub(direct, inverse) : neg(inverse)};
}
All remainder_of(const ForwardCall& c) {
  if (!c.tangents[1].defined()) return {c.tangents[0]};
  const Tensor other = mul(c.tangents[1], trunc(div(c.inputs[0], c.inputs[1])));
  return {c.tangents[0].defined() ? sub(c.tangents[0], other) : neg(other)};
}
// As the gradients of pow have it.
All raised(const ForwardCall& c) {
  const Tensor &a = c.inputs[0], &b = c.inputs[1];
  const Tensor by_base = c.tangents[0].defined() ? where(eq(b, 0), 0, mul(b, pow(a, sub(b, 1)))) : Tensor();
  Tensor by_power;
  if (c.tangents[1].defined()) by_power = mul(c.outputs[0], log(where(logical_and(eq(a, 0), ge(b, 0)), 1, a)));
  return {sum_of(times(c.tangents[0], by_base), times(c.tangents[1], by_power))};
}
// Equal operands have half of the weight each.
template <bool kLarger> All larger(const ForwardCall& c) {
  const auto weight = [&](const Tensor& mine, const Tensor& other) {
    const Tensor wins = cast(kLarger ? gt(mine, other) : lt(mine, other), mine.dtype());
    return add(wins, mul(cast(eq(mine, other), mine.dtype()), 0.5));
  };
  Tensor total;
  for (size_t i = 0; i < 2; ++i)
    if (c.tangents[i].defined()) total = sum_of(total, mul(c.tangents[i], weight(c.inputs[i], c.inputs[1 - i])));
  return {total};
}

// --- Reductions and rows.

// The mean over the elements that are equal to the result.
All extremum(const ForwardCall& c) {
  const Tensor is_it = cast(eq(c.inputs[0], c.outputs[0]), c.inputs[0].dtype());
  const Shape shape = c.outputs[0].shape();
  return {div(sum_to(mul(c.tangents[0], is_it), shape), sum_to(is_it, shape))};
}
int axis_of(const ForwardCall& c) { return static_cast<const plugrad_axis*>(c.call.attributes)->axis; }
All softmax_rows(const ForwardCall& c) {
  const Tensor &y = c.outputs[0], weighted = mul(y, c.tangents[0]);
  return {sub(weighted, mul(y, sum(weighted, {axis_of(c)}, true)))};
}
All log_softmax_rows(const ForwardCall& c) {
  const Tensor& t = c.tangents[0];
  return {sub(t, sum(mul(exp(c.outputs[0]), t), {axis_of(c)}, true))};
}
}  // namespace

namespace {
constexpr struct {
  Op op;
  ForwardRule rule;
} kRules[] = {
    {Op::COPY, copied},
    {Op::CAST, linear<0>},
    {Op::NEG, negated},
    {Op::ABS, absolute},
    {Op::SQRT, square_root},
    {Op::EXP, exponential},
    {Op::LOG, logarithm},
    {Op::TANH, hyperbolic_tangent},
    {Op::RELU, rectified},
    {Op::SIGMOID, sigmoidal},
    {Op::ERF, error_function},
    {Op::SIN, sine},
    {Op::COS, cosine},
    {Op::ATAN, arc_tangent},
    {Op::ADD, added},
    {Op::SUB, subtracted},
    {Op::MUL, multiplied},
    {Op::DIV, divided},
    {Op::POW, raised},
    {Op::MAXIMUM, larger<true>},
    {Op::MINIMUM, larger<false>},
    {Op::FMOD, remainder_of},
    {Op::WHERE, chosen},
    {Op::SUM, linear<0>},
    {Op::MAX, extremum},
    {Op::MIN, extremum},
    {Op::MATMUL, bilinear},
    {Op::MATMUL_ADD, product_and_sum},
    {Op::QUANTIZED_MATMUL, linear<0>},
    {Op::GATHER, linear<0>},
    {Op::SCATTER_ADD, scattered},
    {Op::SCATTER_SUM, linear<1>},
    {Op::SOFTMAX, softmax_rows},
    {Op::LOG_SOFTMAX, log_softmax_rows},
    {Op::CUMSUM, linear<0>},
    {Op::FFT, linear<0>},
    {Op::CONVOLUTION, bilinear},
    {Op::CONVOLUTION_BIAS, product_and_sum},
    {Op::CONVOLUTION_INPUT_GRAD, bilinear},
    {Op::CONVOLUTION_WEIGHT_GRAD, bilinear},
    {Op::MAX_POOL, pooled},
    {Op::MAX_POOL_BACKWARD, linear<0>},
};
}  // namespace

ForwardRule forward_rule(uint32_t opcode) {
  static constexpr auto kTable = [] {
    std::array<ForwardRule, kKeyOperands.size()> table{};
    for (const auto& each : kRules) table[static_cast<size_t>(each.op)] = each.rule;
    return table;
  }();
  return opcode < kTable.size() ? kTable[opcode] : nullptr;
}

}  // namespace plugrad::func
