// Compares elementwise ops in each dtype with the C library and with NumPy's rules of broadcasting.
#include <tests/core/expect.hpp>

#include <cmath>
#include <limits>

namespace plugrad::test {
namespace {
constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();
const std::vector<double> kSpecial = {-kInf, -2.5, -1, -0.0, 0, 5e-324, 0.5, 1, 3, kInf, kNan};

double tolerance(DType dtype) {
  return is_floating(dtype) ? 18 * std::ldexp(1, -dtype_info(static_cast<uint8_t>(dtype))->digits) : 0;
}
// A whole number as the dtype holds it: modulo a power of two.
double wrapped(DType dtype, double value) {
  const DTypeInfo& info = *dtype_info(static_cast<uint8_t>(dtype));
  const double least = info.is_unsigned() ? 0 : -std::ldexp(1, info.digits), count = std::ldexp(1, 8 * info.size);
  return value - count * std::floor((value - least) / count);
}
double rounded(DType dtype, double value) {
  if (is_integer(dtype)) return wrapped(dtype, value);
  return is_floating(dtype) ? elements(of(dtype, {value}, {1}))[0] : value;
}
int64_t size_of(const std::vector<double>& x) { return static_cast<int64_t>(x.size()); }

// --- One tensor.

struct Unary {
  const char* name;
  Tensor (*apply)(const Tensor& x);
  double (*expected)(double x);
};
const Unary kUnary[] = {
    {"neg", neg, [](double x) { return -x; }},
    {"abs", abs, [](double x) { return std::abs(x); }},
    {"sign", sign, [](double x) { return x > 0   ? 1.0
                                         : x < 0 ? -1.0
                                                 : x; }},
    {"sqrt", sqrt, [](double x) { return std::sqrt(x); }},
    {"exp", exp, [](double x) { return std::exp(x); }},
    {"log", log, [](double x) { return std::log(x); }},
    {"tanh", tanh, [](double x) { return std::tanh(x); }},
    {"sigmoid", sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }},
    {"relu", relu, [](double x) { return x < 0 ? 0 : x; }},
    {"clone", clone, [](double x) { return x; }},
};

TEST(Elementwise, FunctionsOfSpecialValues) {
  std::vector<double> values = kSpecial;
  values[5] = 1e-30;  // not denormal in f32
  for (DType dtype : {DType::f64, DType::f32})
    for (const Unary& each : kUnary) {
      const Tensor x = of(dtype, values, {size_of(values)});
      std::vector<double> expected;
      for (double value : elements(x)) expected.push_back(each.expected(value));
      EXPECT_TRUE(close(each.apply(x), x.shape(), expected, tolerance(dtype))) << each.name << ' ' << dtype;
    }
}

TEST(Elementwise, SignsOfZeroSurvive) {
  const Tensor x = f64({0, -0.0});
  EXPECT_TRUE(same_bits(elements(-x), {-0.0, 0}));
  EXPECT_TRUE(same_bits(elements(abs(x)), {0, 0}));
  EXPECT_TRUE(same_bits(elements(sign(x)), {0, -0.0}));
  EXPECT_TRUE(same_bits(elements(relu(x)), {0, -0.0}));
  EXPECT_TRUE(same_bits(elements(sqrt(x)), {0, -0.0}));
  EXPECT_TRUE(same_bits(elements(clone(x)), {0, -0.0}));
}

TEST(Elementwise, IntegersWrap) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min(), kMax = std::numeric_limits<int64_t>::max();
  const Tensor x = i64({kMin, kMax, -3});
  using Integers = std::vector<int64_t>;
  EXPECT_EQ((-x).to_vector<int64_t>(), (Integers{kMin, -kMax, 3}));
  EXPECT_EQ(abs(x).to_vector<int64_t>(), (Integers{kMin, kMax, 3}));
  EXPECT_EQ(sign(x).to_vector<int64_t>(), (Integers{-1, 1, -1}));
  EXPECT_EQ((x + 1).to_vector<int64_t>(), (Integers{kMin + 1, kMin, -2}));
  EXPECT_EQ((x - 1).to_vector<int64_t>(), (Integers{kMax, kMax - 1, -4}));
  EXPECT_EQ((x * 2).to_vector<int64_t>(), (Integers{0, -2, -6}));
  EXPECT_EQ(maximum(x, 0).to_vector<int64_t>(), (Integers{0, kMax, 0}));
  EXPECT_EQ((x + 9007199254740993).to_vector<int64_t>()[2], 9007199254740990);  // numbers of 2^53 and more stay exact
}

// --- Two tensors.

struct Binary {
  const char* name;
  Tensor (*apply)(const Tensor& a, const Tensor& b);
  Tensor (*with_number)(const Tensor& a, Number b);
  double (*expected)(double a, double b);
  bool integers, booleans;
};
double larger(double a, double b) { return std::isnan(a) || std::isnan(b) ? kNan : a > b ? a : b; }
double smaller(double a, double b) { return std::isnan(a) || std::isnan(b) ? kNan : a < b ? a : b; }
const Binary kBinary[] = {
    {"add", add, add, [](double a, double b) { return a + b; }, true, false},
    {"sub", sub, sub, [](double a, double b) { return a - b; }, true, false},
    {"mul", mul, mul, [](double a, double b) { return a * b; }, true, false},
    {"div", div, div, [](double a, double b) { return a / b; }, false, false},
    {"pow", pow, pow, [](double a, double b) { return std::pow(a, b); }, false, false},
    {"maximum", maximum, maximum, larger, true, false},
    {"minimum", minimum, minimum, smaller, true, false},
    {"eq", eq, eq, [](double a, double b) { return static_cast<double>(a == b); }, true, true},
    {"ne", ne, ne, [](double a, double b) { return static_cast<double>(a != b); }, true, true},
    {"lt", lt, lt, [](double a, double b) { return static_cast<double>(a < b); }, true, true},
    {"le", le, le, [](double a, double b) { return static_cast<double>(a <= b); }, true, true},
    {"gt", gt, gt, [](double a, double b) { return static_cast<double>(a > b); }, true, true},
    {"ge", ge, ge, [](double a, double b) { return static_cast<double>(a >= b); }, true, true},
};

std::vector<double> values_for(DType dtype) {
  if (dtype == DType::boolean) return {0, 1};
  if (is_integer(dtype)) return {-7, -1, 0, 1, 2, 9};
  std::vector<double> values = kSpecial;
  values[5] = 1e-30;
  return values;
}

// Every pair, by broadcasting a column with a row.
TEST(Elementwise, EveryPairOfValues) {
  for (DType dtype : kRealDTypes) {
    const std::vector<double> raw = values_for(dtype);
    const int64_t n = size_of(raw);
    const Tensor column = of(dtype, raw, {n, 1}), row = of(dtype, raw, {n});
    const std::vector<double> values = elements(row);
    for (const Binary& each : kBinary) {
      if ((is_integer(dtype) && !each.integers) || (dtype == DType::boolean && !each.booleans)) continue;
      std::vector<double> expected;
      for (double a : values)
        for (double b : values) expected.push_back(rounded(dtype, each.expected(a, b)));
      EXPECT_TRUE(close(each.apply(column, row), {n, n}, expected, tolerance(dtype))) << each.name << ' ' << dtype;
    }
  }
}

TEST(Elementwise, NumbersTakeTheTensorsDtype) {
  for (DType dtype : kRealDTypes) {
    const Tensor x = of(dtype, values_for(dtype), {size_of(values_for(dtype))});
    for (const Binary& each : kBinary) {
      if ((is_integer(dtype) && !each.integers) || (dtype == DType::boolean && !each.booleans)) continue;
      for (int64_t number : {0, 1}) {
        const double real = static_cast<double>(number);
        std::vector<double> expected;
        for (double value : elements(x)) expected.push_back(rounded(dtype, each.expected(value, real)));
        EXPECT_TRUE(close(each.with_number(x, number), x.shape(), expected, tolerance(dtype)))
            << each.name << ' ' << dtype << ' ' << number;
      }
    }
  }
}

TEST(Elementwise, NumbersOnTheLeft) {
  const Tensor x = f64({-2, 0.5, 4});
  EXPECT_TRUE(close(1 + x, {3}, {-1, 1.5, 5}));
  EXPECT_TRUE(close(1 - x, {3}, {3, 0.5, -3}));
  EXPECT_TRUE(close(3 * x, {3}, {-6, 1.5, 12}));
  EXPECT_TRUE(close(1 / x, {3}, {-0.5, 2, 0.25}));
  EXPECT_TRUE(close(pow(2, x), {3}, {0.25, std::sqrt(2.0), 16}, 1e-15));
  EXPECT_EQ((10 - i64({3, -3})).to_vector<int64_t>(), (std::vector<int64_t>{7, 13}));
}

// A fraction that is an operand with an f32 tensor is rounded to f32 once.
TEST(Elementwise, AFractionEqualsItsFloat) {
  const Tensor x = of(DType::f32, {0.1}, {1});
  EXPECT_TRUE(eq(x, 0.1).item<bool>());
  EXPECT_EQ((x + 0.2).item<float>(), 0.1f + 0.2f);
}

TEST(Elementwise, WhereTakesOnlyWhatIsChosen) {
  const Tensor condition = of(DType::boolean, {1, 0, 1}, {3});
  EXPECT_TRUE(close(where(condition, f64({1, kNan, 3}), f64({kNan, 2, kNan})), {3}, {1, 2, 3}));
  EXPECT_TRUE(close(where(condition, f64({5, 6}, {2, 1}), 0), {2, 3}, {5, 0, 5, 6, 0, 6}));
  EXPECT_TRUE(close(where(condition, 7, i64({1, 2, 3})), {3}, {7, 2, 7}));
  EXPECT_TRUE(close(where(condition, condition, lt(f64({0}, {1}), 1)), {3}, {1, 1, 1}));
  EXPECT_TRUE(close(where(of(DType::boolean, {1, 0}, {2, 1, 1}), f64({1, 2}, {2, 1}), f64({3, 4, 5})), {2, 2, 3},
                    {1, 1, 1, 2, 2, 2, 3, 4, 5, 3, 4, 5}));
}

// --- Broadcasting.

struct Broadcast {
  Shape a, b, out;
};
const Broadcast kBroadcasts[] = {
    {{}, {}, {}},
    {{}, {3}, {3}},
    {{3}, {1}, {3}},
    {{2, 1}, {3}, {2, 3}},
    {{2, 3}, {1, 1, 1}, {1, 2, 3}},
    {{4, 1, 3}, {2, 1}, {4, 2, 3}},
    {{0}, {1}, {0}},
    {{0, 3}, {3}, {0, 3}},
    {{1, 3}, {0, 1}, {0, 3}},
    {{2, 0}, {}, {2, 0}},
    {{1}, {2, 0}, {2, 0}},
    {{2, 1, 2, 1, 2, 1, 2, 1}, {1, 2, 1, 2, 1, 2, 1, 2}, {2, 2, 2, 2, 2, 2, 2, 2}},
    {{2, 2, 2, 2, 2, 2, 2, 2}, {2}, {2, 2, 2, 2, 2, 2, 2, 2}},
};

TEST(Elementwise, BroadcastsAsNumPy) {
  for (const Broadcast& each : kBroadcasts)
    for (bool swapped : {false, true}) {
      const Shape &a = swapped ? each.b : each.a, &b = swapped ? each.a : each.b;
      std::vector<double> expected;
      for (const Shape& at : positions(each.out))
        expected.push_back(static_cast<double>(offset(within(at, a), a) - 100 * offset(within(at, b), b)));
      EXPECT_EQ(broadcast_shapes(a, b), each.out);
      EXPECT_TRUE(close(counting(a) - counting(b) * 100, each.out, expected)) << a << b;
    }
}

TEST(Elementwise, ShapesThatDoNotBroadcastAreNamed) {
  const std::pair<Shape, Shape> kBad[] = {{{2}, {3}}, {{2, 3}, {2}}, {{0}, {2}}, {{4, 1, 3}, {2, 2}}, {{2, 3}, {3, 2}}};
  for (const auto& [a, b] : kBad) {
    EXPECT_TRUE(throws(Code::invalid, {"[mul]", a.text(), b.text()}, [&] { counting(a) * counting(b); }));
    EXPECT_TRUE(throws(Code::invalid, {a.text(), b.text()}, [&] { broadcast_shapes(a, b); }));
  }
}

TEST(Elementwise, StridedOperands) {
  const Tensor x = counting({3, 4});
  EXPECT_TRUE(close(transpose(x) + reshape(x, {4, 3}), {4, 3}, {0, 5, 10, 4, 9, 14, 8, 13, 18, 12, 17, 22}));
  EXPECT_TRUE(close(slice(x, 1, -1, -5, -2) * slice(x, 1, 0, 4, 2), {3, 2}, {0, 2, 28, 30, 88, 90}));
  EXPECT_TRUE(close(exp(slice(x, 0, 2, 0, -2)), {1, 4}, {std::exp(8), std::exp(9), std::exp(10), std::exp(11)}, 1e-14));
  EXPECT_TRUE(close(expand(select(x, 0, 1), {2, 4}) - 4, {2, 4}, {0, 1, 2, 3, 0, 1, 2, 3}));
}

TEST(Elementwise, NothingInNothingOut) {
  for (DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64}) {
    const Tensor none = zeros({2, 0, 3}, dtype);
    EXPECT_TRUE(close(none + none, {2, 0, 3}, {}));
    EXPECT_TRUE(close(-none, {2, 0, 3}, {}));
    EXPECT_TRUE(close(where(eq(none, 0), none, 1), {2, 0, 3}, {}));
    EXPECT_TRUE(close(cast(none, DType::boolean), {2, 0, 3}, {}));
    EXPECT_TRUE(close(to(none, other_device()), {2, 0, 3}, {}));
  }
}

}  // namespace
}  // namespace plugrad::test
