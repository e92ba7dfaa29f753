#include <sdk/conformance/op_rows.hpp>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <span>

namespace plugrad::conformance {
namespace {

using Real = long double;
using Real1 = Real (*)(Real);
using Real2 = Real (*)(Real, Real);
using Integer1 = uint64_t (*)(uint64_t);  // modulo 2^64, so it wraps
using Integer2 = uint64_t (*)(uint64_t, uint64_t);

Real sign(Real x) {
  if (x > 0) return 1;
  return x < 0 ? -1 : x;
}

// Ops of 0 ULP round once. Double arithmetic gives their value exactly or correctly rounded. A second rounding, to f32,
// gives the same result as a single rounding, since double has more than 2 p + 2 bits, with p the number of f32's bits.
struct UnaryRow {
  uint32_t opcode;
  Real1 real;
  Integer1 integer;  // null if `real` serves integers too
  Range range;
};
constexpr UnaryRow kUnary[] = {
    {PLUGRAD_OP_NEG, [](Real x) { return -x; }, [](uint64_t x) { return -x; }, {-100, 100}},
    {PLUGRAD_OP_ABS,
     [](Real x) { return std::fabs(x); },
     [](uint64_t x) { return static_cast<int64_t>(x) < 0 ? -x : x; },
     {-100, 100}},
    {PLUGRAD_OP_SIGN, sign, nullptr, {-3, 3}},
    {PLUGRAD_OP_SQRT, [](Real x) -> Real { return std::sqrt(static_cast<double>(x)); }, nullptr, {0, 100}},
    {PLUGRAD_OP_EXP, [](Real x) { return std::exp(x); }, nullptr, {-10, 10}},
    {PLUGRAD_OP_LOG, [](Real x) { return std::log(x); }, nullptr, {0, 4}},
    {PLUGRAD_OP_TANH, [](Real x) { return std::tanh(x); }, nullptr, {-3, 3}},
    {PLUGRAD_OP_RELU, [](Real x) { return x < 0 ? 0 : x; }, nullptr, {-3, 3}},
    {PLUGRAD_OP_SIGMOID, [](Real x) { return 1 / (1 + std::exp(-x)); }, nullptr, {-10, 10}},
    {PLUGRAD_OP_ERF, [](Real x) { return std::erf(x); }, nullptr, {-4, 4}},
    {PLUGRAD_OP_SIN, [](Real x) { return std::sin(x); }, nullptr, {-10, 10}},
    {PLUGRAD_OP_COS, [](Real x) { return std::cos(x); }, nullptr, {-10, 10}},
    {PLUGRAD_OP_ATAN, [](Real x) { return std::atan(x); }, nullptr, {-4, 4}},
};

// Uses double if an operand is infinite or NaN: the result is exact, and glibc's powl is wrong for pow(-inf, -2^63).
Real power(Real a, Real b) {
  if (std::isfinite(a) && std::isfinite(b)) return std::pow(a, b);
  return std::pow(static_cast<double>(a), static_cast<double>(b));
}

Real larger(Real a, Real b) { return std::isnan(a) || std::isnan(b) ? a + b : a > b ? a : b; }
Real smaller(Real a, Real b) { return std::isnan(a) || std::isnan(b) ? a + b : a < b ? a : b; }

// Integers as the host's processor has them, except where its division would trap.
uint64_t integer_quotient(uint64_t a, uint64_t b) {
  if (b == 0) return 0;
  return b + 1 == 0 ? -a : static_cast<uint64_t>(static_cast<int64_t>(a) / static_cast<int64_t>(b));
}
uint64_t integer_remainder(uint64_t a, uint64_t b) { return b == 0 ? 0 : a - b * integer_quotient(a, b); }
uint64_t shifted_left(uint64_t a, uint64_t b) { return b < 64 ? a << b : 0; }
uint64_t shifted_right(uint64_t a, uint64_t b) {
  return static_cast<uint64_t>(static_cast<int64_t>(a) >> std::min<uint64_t>(b, 63));
}

struct BinaryRow {
  uint32_t opcode;
  Real2 real;
  Integer2 integer;  // null if `real` serves integers too
  Range left, right;
  bool any_zero_sign = false;
};
constexpr BinaryRow kBinary[] = {
    {PLUGRAD_OP_ADD,
     [](Real a, Real b) -> Real { return static_cast<double>(a) + static_cast<double>(b); },
     [](uint64_t a, uint64_t b) { return a + b; },
     {-100, 100},
     {-100, 100}},
    {PLUGRAD_OP_SUB,
     [](Real a, Real b) -> Real { return static_cast<double>(a) - static_cast<double>(b); },
     [](uint64_t a, uint64_t b) { return a - b; },
     {-100, 100},
     {-100, 100}},
    {PLUGRAD_OP_MUL,
     [](Real a, Real b) -> Real { return static_cast<double>(a) * static_cast<double>(b); },
     [](uint64_t a, uint64_t b) { return a * b; },
     {-100, 100},
     {-100, 100}},
    {PLUGRAD_OP_DIV,
     [](Real a, Real b) -> Real { return static_cast<double>(a) / static_cast<double>(b); },
     nullptr,
     {-100, 100},
     {-10, 10}},
    {PLUGRAD_OP_POW, power, nullptr, {0, 8}, {-5, 5}},
    {PLUGRAD_OP_MAXIMUM, larger, nullptr, {-3, 3}, {-3, 3}, true},
    {PLUGRAD_OP_MINIMUM, smaller, nullptr, {-3, 3}, {-3, 3}, true},
    {PLUGRAD_OP_FMOD, [](Real a, Real b) { return std::fmod(a, b); }, integer_remainder, {-100, 100}, {-10, 10}},
    {PLUGRAD_OP_QUOTIENT, nullptr, integer_quotient, {-100, 100}, {-10, 10}},
    {PLUGRAD_OP_BITWISE_AND, nullptr, [](uint64_t a, uint64_t b) { return a & b; }, {-100, 100}, {-100, 100}},
    {PLUGRAD_OP_BITWISE_OR, nullptr, [](uint64_t a, uint64_t b) { return a | b; }, {-100, 100}, {-100, 100}},
    {PLUGRAD_OP_BITWISE_XOR, nullptr, [](uint64_t a, uint64_t b) { return a ^ b; }, {-100, 100}, {-100, 100}},
    {PLUGRAD_OP_BITWISE_LEFT_SHIFT, nullptr, shifted_left, {-100, 100}, {-2, 70}},
    {PLUGRAD_OP_BITWISE_RIGHT_SHIFT, nullptr, shifted_right, {-100, 100}, {-2, 70}},
    {PLUGRAD_OP_EQ, [](Real a, Real b) -> Real { return a == b; }, nullptr, {-3, 3}, {-3, 3}},
    {PLUGRAD_OP_NE, [](Real a, Real b) -> Real { return a != b; }, nullptr, {-3, 3}, {-3, 3}},
    {PLUGRAD_OP_LT, [](Real a, Real b) -> Real { return a < b; }, nullptr, {-3, 3}, {-3, 3}},
    {PLUGRAD_OP_LE, [](Real a, Real b) -> Real { return a <= b; }, nullptr, {-3, 3}, {-3, 3}},
    {PLUGRAD_OP_RELU_BACKWARD, [](Real grad, Real x) { return x <= 0 ? 0 : grad; }, nullptr, {-3, 3}, {-3, 3}},
};

// Activations x s(v(x)) with a distribution function s: the bound is 8 eps times the terms, the result's absolute value and
// the effect of an error of v: v moves s by no more than the smaller of s and 1 - s, times v's own error.
struct ActivationRow {
  uint32_t opcode;
  Real1 real;
  Real1 terms;
};
constexpr Real kRoot2 = 1.41421356237309504880L, kRoot2Pi = 2.50662827463100050242L;
Real normal_below(Real x) { return std::erfc(-x / kRoot2) / 2; }
Real normal_density(Real x) { return std::exp(-x * x / 2) / kRoot2Pi; }
Real smaller_tail(Real x) { return std::erfc(std::fabs(x) / kRoot2) / 2; }
Real logistic(Real v) { return 1 / (1 + std::exp(-v)); }
Real twice_u(Real x) { return 4 / kRoot2Pi * (x + 0.044715L * x * x * x); }
Real slope_of_u(Real x) { return 4 / kRoot2Pi * (1 + 3 * 0.044715L * x * x); }
// s + x s (1 - s) v' with s = s(v)
Real gated_slope(Real x, Real v, Real slope) { return logistic(v) + x * logistic(v) * logistic(-v) * slope; }
Real gated_terms(Real x, Real v, Real slope) {
  const Real falling = logistic(v) * logistic(-v), gate = std::fabs(x) * falling * slope;
  return logistic(v) + gate + std::fabs(v) * (falling + gate);
}
constexpr ActivationRow kActivations[] = {
    {PLUGRAD_OP_GELU, [](Real x) { return x * normal_below(x); },
     [](Real x) { return std::fabs(x) * (normal_below(x) + smaller_tail(x) * x * x / 2); }},
    {PLUGRAD_OP_GELU_TANH, [](Real x) { return x * logistic(twice_u(x)); },
     [](Real x) { return std::fabs(x) * logistic(twice_u(x)) * (1 + logistic(-twice_u(x)) * std::fabs(twice_u(x))); }},
    {PLUGRAD_OP_SILU, [](Real x) { return x * logistic(x); }, [](Real x) { return std::fabs(x) * logistic(x); }},
};

// Gradients as products of a few terms: the bound is a number of eps times the sum of the terms' absolute values.
struct GradientRow {
  uint32_t opcode;
  Real2 real;  // of grad and the output y, or the input x
  Real2 terms;
  Range y;
  Real factor = 4;
  Real1 scale = [](Real) -> Real { return 1; };  // of the factor of an exponential, which may be denormal
};
constexpr GradientRow kGradients[] = {
    {PLUGRAD_OP_SIGMOID_BACKWARD,
     [](Real grad, Real y) { return grad * (y * (1 - y)); },
     [](Real grad, Real y) { return std::fabs(grad * y) * (1 + std::fabs(y)); },
     {0, 1}},
    {PLUGRAD_OP_TANH_BACKWARD,
     [](Real grad, Real y) { return grad * (1 - y * y); },
     [](Real grad, Real y) { return std::fabs(grad) * (1 + y * y); },
     {-1, 1}},
    {PLUGRAD_OP_GELU_BACKWARD,
     [](Real grad, Real x) { return grad * (normal_below(x) + x * normal_density(x)); },
     [](Real grad, Real x) {
       const Real moved = (smaller_tail(x) + std::fabs(x) * normal_density(x)) * x * x / 2;
       return std::fabs(grad) * (normal_below(x) + std::fabs(x) * normal_density(x) + moved);
     },
     {-6, 6},
     8,
     [](Real x) { return 1 + std::fabs(x); }},
    {PLUGRAD_OP_GELU_TANH_BACKWARD,
     [](Real grad, Real x) { return grad * gated_slope(x, twice_u(x), slope_of_u(x)); },
     [](Real grad, Real x) { return std::fabs(grad) * gated_terms(x, twice_u(x), slope_of_u(x)); },
     {-6, 6},
     8,
     [](Real x) { return (1 + std::fabs(x)) * slope_of_u(x); }},
    {PLUGRAD_OP_SILU_BACKWARD,
     [](Real grad, Real x) { return grad * gated_slope(x, x, 1); },
     [](Real grad, Real x) { return std::fabs(grad) * gated_terms(x, x, 1); },
     {-10, 10},
     8,
     [](Real x) { return 1 + std::fabs(x); }},
};

template <class Row, size_t N> constexpr const Row* find(const Row (&rows)[N], uint32_t opcode) {
  for (const Row& row : rows)
    if (row.opcode == opcode) return &row;
  return nullptr;
}

template <class Row, size_t N> constexpr bool has(const Row (&rows)[N], uint32_t opcode) {
  return std::ranges::any_of(rows, [opcode](const Row& row) { return row.opcode == opcode; });
}

// Compared by opcode: with some sanitizers the address of a function is not a constant expression.
constexpr bool tables_are_complete() {
  for (const OpInfo& op : kOps) {
    if (op.shape != OpShape::elementwise || op.opcode == PLUGRAD_OP_WHERE) continue;
    if (!has(kUnary, op.opcode) && !has(kBinary, op.opcode) && !has(kActivations, op.opcode) && !has(kGradients, op.opcode))
      return false;
  }
  return true;
}
static_assert(tables_are_complete(), "every elementwise op needs its reference function");

Expected evaluated(uint8_t dtype, Real value, double ulps) {
  if (ulps == 0) return {is_floating(dtype) ? rounded(dtype, value) : value, 0, false, false};
  return {value, ulp_bound(dtype, value, ulps), false, false};
}

Real wrapped_real(uint8_t dtype, uint64_t value) { return static_cast<Real>(wrapped(dtype, static_cast<int64_t>(value))); }

// The range of an input's ordinary values.
Range range_of(const Question& question, int input) {
  const uint32_t opcode = question.op->opcode;
  if (const UnaryRow* row = find(kUnary, opcode)) return row->range;
  if (const BinaryRow* row = find(kBinary, opcode)) return input == 0 ? row->left : row->right;
  if (const GradientRow* row = find(kGradients, opcode); row && input == 1) return row->y;
  if (find(kActivations, opcode)) return {-10, 10};
  return opcode == PLUGRAD_OP_CAST ? Range{-300, 300} : Range{-3, 3};
}

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> list = {{kCrossExtent, kCrossExtent + 1},
                                          {},
                                          {1},
                                          {2},
                                          {3},
                                          {5},
                                          {8},
                                          {9},
                                          {16},
                                          {17},
                                          {31},
                                          {64},
                                          {67},
                                          {130},
                                          {1, 6},
                                          {6, 1},
                                          {5, 7},
                                          {3, 4, 5},
                                          {2, 3, 1, 4},
                                          {2, 1, 2, 3, 1, 2, 2, 2},
                                          {257, 301}};
  return list;
}

// Floating to integer: towards zero, saturating, NaN gives 0.
Real saturated(uint8_t dtype, Real value) {
  if (std::isnan(value)) return 0;
  const Real end = std::ldexp(Real(1), dtype_info(dtype)->digits), least = dtype_info(dtype)->is_unsigned() ? 0 : -end;
  return std::min(std::max(std::trunc(value), least), end - 1) + 0.0L;
}

void solve_unary(const UnaryRow& row, const Question& question, const Problem& problem, Expectations& expected) {
  const Array& x = problem.inputs[0];
  const bool integer = !is_floating(question.out()) && row.integer;
  for (int64_t i = 0; i < x.count(); ++i)
    expected[0].elements[i] = integer ? Expected{wrapped_real(question.out(), row.integer(x.integer(i)))}
                                      : evaluated(question.out(), row.real(x.get(i)), question.op->ulps);
}

void solve_binary(const BinaryRow& row, const Question& question, const Problem& problem, Expectations& expected) {
  const Array &a = problem.inputs[0], &b = problem.inputs[1];
  const bool integer = !is_floating(question.in(0)) && row.integer;
  for (int64_t i = 0; i < a.count(); ++i) {
    Expected& e = expected[0].elements[i];
    if (integer) e.value = wrapped_real(question.out(), row.integer(a.integer(i), b.integer(i)));
    else e = evaluated(question.out(), row.real(a.get(i), b.get(i)), question.op->ulps);
    e.any_zero_sign = row.any_zero_sign;
  }
}

void solve_activation(const ActivationRow& row, const Question& question, const Problem& problem, Expectations& expected) {
  const Array& x = problem.inputs[0];
  const FloatLimits& limits = limits_of(question.out());
  for (int64_t i = 0; i < x.count(); ++i) {
    const Real terms = row.terms(x.get(i));
    Expected& e = expected[0].elements[i];
    e.value = row.real(x.get(i));
    e.exponentials = 1 + std::fabs(x.get(i));
    e.bound = 8 * limits.epsilon * (terms > 0 ? terms : 0) + 4 * limits.smallest_denormal * e.exponentials;
    e.any_zero_sign = true;
  }
}

void solve_gradient(const GradientRow& row, const Question& question, const Problem& problem, Expectations& expected) {
  const Array &grad = problem.inputs[0], &y = problem.inputs[1];
  const FloatLimits& limits = limits_of(question.out());
  for (int64_t i = 0; i < grad.count(); ++i) {
    const Real terms = row.terms(grad.get(i), y.get(i)), square = y.get(i) * y.get(i);
    Expected& e = expected[0].elements[i];
    e.value = row.real(grad.get(i), y.get(i));
    e.exponentials = 1 + std::fabs(grad.get(i)) * row.scale(y.get(i));
    const auto bound = [&](Real g) {
      const Real least = 4 * limits.smallest_denormal * (1 + std::fabs(g) * row.scale(y.get(i)));
      return row.factor * limits.epsilon * row.terms(g, y.get(i)) + least;
    };
    e.bound = bound(grad.get(i));
    // If an intermediate product may overflow, the result depends on the order of the factors.
    const bool finite = std::isfinite(grad.get(i)) && std::isfinite(y.get(i));
    e.unspecified = (finite && terms >= limits.largest / 2) || (std::isfinite(y.get(i)) && square >= limits.largest / 2);
    if (std::isinf(grad.get(i))) {  // times a derivative that may be 0, or with an exponential flushed by the device
      const Real derivative = std::fabs(row.real(1, y.get(i))), flushed = 4 * limits.smallest_normal * row.scale(y.get(i));
      e.unspecified |= derivative <= bound(1);
      if (derivative > bound(1) + flushed) e.exponentials = 0;
    }
  }
}

}  // namespace

namespace {
// For f32 also a shape long enough for kernels with blocks of 2^17.
std::vector<Shape> shapes_for(const Question& question) {
  std::vector<Shape> list = shapes();
  const bool f32 = std::ranges::all_of(question.dtypes, [](uint8_t dtype) { return dtype == PLUGRAD_F32; });
  if (f32 && !question.flags) list.push_back({262147});
  return list;
}
}  // namespace

std::vector<Problem> elementwise_problems(const Question& question, Random& random) {
  const OpInfo& op = *question.op;
  std::vector<Problem> list;
  for (const Shape& shape : shapes_for(question)) {
    Problem problem;
    problem.large = count_of(shape) > 10000;
    problem.outputs.emplace_back(question.out(), shape);
    for (int i = 0; i < op.inputs; ++i) {
      const Range range = range_of(question, i);
      const bool crossed = !shape.empty() && shape[0] == kCrossExtent;
      const int digit = op.inputs == 3 ? i - 1 : i;
      if (op.scalar_inputs() >> i & 1) problem.inputs.push_back(mixed_array(question.in(i), {}, range, random));
      else if (!crossed) problem.inputs.push_back(mixed_array(question.in(i), shape, range, random));
      else problem.inputs.push_back(crossed_array(question.in(i), shape, range, digit, op.inputs, random));
    }
    if (op.opcode == PLUGRAD_OP_COPY && is_floating(question.out())) put_signalling_nans(problem.inputs[0]);
    list.push_back(std::move(problem));
  }
  return list;
}

void fill_reference(const Question&, const Problem& problem, Expectations& expected) {
  for (Expected& e : expected[0].elements) e.value = problem.inputs[0].get(0);
}

void copy_reference(const Question&, const Problem& problem, Expectations& expected) {
  for (int64_t i = 0; i < problem.inputs[0].count(); ++i) expected[0].elements[i].value = problem.inputs[0].get(i);
  expected[0].bits = problem.inputs[0];
}

void cast_reference(const Question& question, const Problem& problem, Expectations& expected) {
  const Array& x = problem.inputs[0];
  const uint8_t to = question.out(), from = question.in(0);
  for (int64_t i = 0; i < x.count(); ++i) {
    const Real value = x.get(i);
    Real& result = expected[0].elements[i].value;
    if (to == PLUGRAD_BOOL) result = value != 0;
    else if (is_floating(to)) result = rounded(to, value);
    else result = is_floating(from) ? saturated(to, value) : static_cast<Real>(wrapped(to, x.integer(i)));
  }
}

void function_reference(const Question& question, const Problem& problem, Expectations& expected) {
  const uint32_t opcode = question.op->opcode;
  if (const UnaryRow* row = find(kUnary, opcode)) solve_unary(*row, question, problem, expected);
  if (const BinaryRow* row = find(kBinary, opcode)) solve_binary(*row, question, problem, expected);
  if (const ActivationRow* row = find(kActivations, opcode)) solve_activation(*row, question, problem, expected);
  if (const GradientRow* row = find(kGradients, opcode)) solve_gradient(*row, question, problem, expected);
}

void where_reference(const Question&, const Problem& problem, Expectations& expected) {
  for (int64_t i = 0; i < problem.inputs[0].count(); ++i)
    expected[0].elements[i].value = problem.inputs[problem.inputs[0].get(i) != 0 ? 1 : 2].get(i);
}

}  // namespace plugrad::conformance
