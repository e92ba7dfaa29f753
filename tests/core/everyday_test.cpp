// Functions composed of other functions: rounding, accurate exponentials and logarithms, truth values, running sums.
#include <tests/core/expect.hpp>

#include <cmath>
#include <limits>

namespace plugrad::test {
namespace {
constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();

struct Function {
  const char* name;
  Tensor (*apply)(const Tensor& x);
  double (*expected)(double x);
};

const Function kRoundings[] = {
    {"floor", floor, std::floor}, {"ceil", ceil, std::ceil}, {"trunc", trunc, std::trunc}, {"round", round, std::nearbyint}};

TEST(Everyday, RoundingIsExactForEveryNumber) {
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    std::vector<double> raw = {0.0,  -0.0,  0.5,   -0.5,   1.5,    -1.5, 2.5,   -2.5,
                               0.49, -0.99, 127.5, -127.5, 1023.5, kInf, -kInf, kNan};
    for (int power : {7, 10, 11, 22, 23, 24, 51, 52, 53, 62, 63, 64})
      for (double x : {std::ldexp(1, power) - 0.5, std::ldexp(1, power) + 0.5, -std::ldexp(1.5, power)}) raw.push_back(x);
    const Tensor x = of(dtype, raw, {static_cast<int64_t>(raw.size())});
    for (const Function& each : kRoundings) {
      std::vector<double> expected;
      for (double value : elements(x)) expected.push_back(each.expected(value));
      EXPECT_TRUE(same_bits(elements(each.apply(x)), elements(of(dtype, expected, x.shape())))) << each.name << ' ' << dtype;
    }
  }
  EXPECT_EQ(floor(i64({-3})).dtype(), DType::i64);
}

const Function kPowers[] = {
    {"square", square, [](double x) { return x * x; }},          {"reciprocal", reciprocal, [](double x) { return 1 / x; }},
    {"rsqrt", rsqrt, [](double x) { return 1 / std::sqrt(x); }}, {"exp2", exp2, [](double x) { return std::exp2(x); }},
    {"log2", log2, [](double x) { return std::log2(x); }},       {"log10", log10, [](double x) { return std::log10(x); }},
    {"expm1", expm1, [](double x) { return std::expm1(x); }},    {"log1p", log1p, [](double x) { return std::log1p(x); }},
};

// Angles of points (x, 2) and (x, -0.5).
const Function kAngles[] = {
    {"sin", sin, [](double x) { return std::sin(x); }},
    {"cos", cos, [](double x) { return std::cos(x); }},
    {"tan", tan, [](double x) { return std::tan(x); }},
    {"asin", asin, [](double x) { return std::asin(x); }},
    {"acos", acos, [](double x) { return std::acos(x); }},
    {"atan", atan, [](double x) { return std::atan(x); }},
    {"sinh", sinh, [](double x) { return std::sinh(x); }},
    {"cosh", cosh, [](double x) { return std::cosh(x); }},
    {"asinh", asinh, [](double x) { return std::asinh(x); }},
    {"acosh", acosh, [](double x) { return std::acosh(x); }},
    {"atanh", atanh, [](double x) { return std::atanh(x); }},
    {"atan2 above", [](const Tensor& x) { return atan2(full_like(x, 2), x); }, [](double x) { return std::atan2(2, x); }},
    {"atan2 below", [](const Tensor& x) { return atan2(full_like(x, -0.5), x); },
     [](double x) { return std::atan2(-0.5, x); }},
};

double smallest_normal(DType dtype) {
  return dtype == DType::f64 ? std::numeric_limits<double>::min() : std::numeric_limits<float>::min();
}

// Returns whether the device replaces denormal results by 0, which sdk/ops.md allows it to declare.
bool flushes(DType dtype) { return elements(mul(of(dtype, {smallest_normal(dtype)}, {1}), 0.5))[0] == 0; }

// Expects errors of at most 16 units in the last place.
void expect_accurate(const Function& each, DType dtype, const std::vector<double>& values) {
  const Tensor x = of(dtype, values, {static_cast<int64_t>(values.size())});
  const std::vector<double> exact = elements(x), actual = elements(each.apply(x));
  const double least = flushes(dtype) ? smallest_normal(dtype) : 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    const double expected = elements(of(dtype, {each.expected(exact[i])}, {1}))[0];
    const double bound = 16 * std::ldexp(1, -dtype_info(static_cast<uint8_t>(dtype))->digits) * std::abs(expected);
    const bool right = std::isnan(expected) ? std::isnan(actual[i])
                       : std::isinf(expected)
                           ? actual[i] == expected
                           : std::abs(actual[i] - expected) <= bound || (actual[i] == 0 && std::abs(expected) <= least);
    EXPECT_TRUE(right) << each.name << '(' << exact[i] << ") in " << dtype << ": " << actual[i] << " for " << expected;
  }
}

TEST(Everyday, PowersAndLogarithmsAreAccurate) {
  const std::vector<double> values = {0,    1e-30, -1e-20, 1e-8, -1e-8, 1e-4, -1e-4, 0.3,   -0.3, -0.75, 1,    2,
                                      10.5, 80,    -80,    -1,   -2,    3e38, kInf,  -kInf, kNan, 8,     1000, 0.125};
  for (DType dtype : {DType::f64, DType::f32})
    for (const Function& each : kPowers) expect_accurate(each, dtype, values);
  EXPECT_TRUE(close(exp2(i64({3, 10})), {2}, {8, 1024}));
}

TEST(Everyday, FunctionsOfAnglesAreAccurate) {
  const std::vector<double> values = {0,     1e-30, -1e-20, 1e-8, -1e-4, 0.3,  -0.4, 0.42, -0.75, 0.99999, -1,   1,  1.5,
                                      2.4,   -2.5,  3.25,   -6,   100.5, -710, 88.9, 5e3,  -5e3,  1e-3,    20.5, 22, -19.5,
                                      709.9, 1e17,  3e38,   kInf, -kInf, kNan, -0.0, 12.5, 7e5,   3e9,     355};
  for (DType dtype : {DType::f64, DType::f32})
    for (const Function& each : kAngles) expect_accurate(each, dtype, values);
  EXPECT_TRUE(close(sin(i64({0})), {1}, {0}));
  for (const Function& each : kAngles)  // odd functions keep the sign of 0
    if (each.expected(-1) == -each.expected(1)) {
      EXPECT_TRUE(same_bits(elements(each.apply(f64({-0.0}))), {-0.0})) << each.name;
    }
}

TEST(Everyday, AnglesOfPointsOnTheAxes) {
  std::vector<double> y, x, expected;
  for (const double above : {0.0, -0.0, 1.0, -1.0, kInf, -kInf, kNan})
    for (const double right : {0.0, -0.0, 2.0, -2.0, kInf, -kInf, kNan})
      y.push_back(above), x.push_back(right), expected.push_back(std::atan2(above, right));
  EXPECT_TRUE(close(atan2(f64(y), f64(x)), {static_cast<int64_t>(x.size())}, expected, 1e-15));
}

TEST(Everyday, TruthValues) {
  const Tensor a = f64({0, 0, 2, kNan}), b = i64({0, 3, 0, -1});
  EXPECT_TRUE(close(logical_not(a), {4}, {1, 1, 0, 0}));
  EXPECT_TRUE(close(logical_and(a, b), {4}, {0, 0, 0, 1}));
  EXPECT_TRUE(close(logical_or(a, b), {4}, {0, 1, 1, 1}));
  EXPECT_TRUE(close(logical_xor(a, b), {4}, {0, 1, 1, 0}));
  EXPECT_TRUE(close(logical_and(a, i64({1})), {4}, {0, 0, 1, 1}));
  const Tensor x = f64({1, kInf, -kInf, kNan});
  EXPECT_TRUE(close(isnan(x), {4}, {0, 0, 0, 1}));
  EXPECT_TRUE(close(isinf(x), {4}, {0, 1, 1, 0}));
  EXPECT_TRUE(close(isfinite(x), {4}, {1, 0, 0, 0}));
  EXPECT_TRUE(close(isfinite(i64({1, 2})), {2}, {1, 1}));
  EXPECT_TRUE(close(isnan(i64({1, 2})), {2}, {0, 0}));
  for (const Tensor& each : {logical_not(a), logical_or(a, b), isnan(x), isfinite(b)})
    EXPECT_EQ(each.dtype(), DType::boolean);
}

TEST(Everyday, ReductionsOfTruthValues) {
  const Tensor x = f64({0, 0, 1, 2, 0, kNan}, {3, 2});
  EXPECT_TRUE(close(any(x, {1}), {3}, {0, 1, 1}));
  EXPECT_TRUE(close(all(x, {1}), {3}, {0, 1, 0}));
  EXPECT_TRUE(close(all(x, {1}, true), {3, 1}, {0, 1, 0}));
  EXPECT_EQ(any(x).item<bool>(), true);
  EXPECT_EQ(count_nonzero(x).item<int64_t>(), 3);
  EXPECT_EQ(any(zeros({0})).item<bool>(), false);
  EXPECT_EQ(all(zeros({0})).item<bool>(), true);
  EXPECT_EQ(any(x).dtype(), DType::boolean);
}

TEST(Everyday, CloseNumbers) {
  const Tensor a = f64({1, 1, kInf, kInf, kNan, 0}), b = f64({1 + 1e-6, 1.1, kInf, -kInf, kNan, 1e-9});
  EXPECT_TRUE(close(isclose(a, b), {6}, {1, 0, 1, 0, 0, 1}));
  EXPECT_TRUE(close(isclose(a, b, 0.2, 0, true), {6}, {1, 1, 1, 0, 1, 0}));
  EXPECT_TRUE(close(isclose(i64({3}), f64({3})), {1}, {1}));
  EXPECT_TRUE(close(isclose(f64({1}), f64({kInf})), {1}, {0}));
  // The nearest bf16 of the bound is the second element.
  EXPECT_TRUE(close(isclose(of(DType::bf16, {0.75, 0.75390625}, {2}), zeros({2}, DType::bf16), 0, 0.7525), {2}, {1, 0}));
}

int64_t stride_of(const Shape& shape, int axis) {
  int64_t stride = 1;
  for (int i = axis + 1; i < shape.rank(); ++i) stride *= shape[static_cast<size_t>(i)];
  return stride;
}

// Sums along lines and columns. The sums are exact, except those of bf16.
TEST(Everyday, RunningSumsOfLongLines) {
  for (DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64, DType::bf16})
    for (const Shape& shape : {Shape{5, 1030}, Shape{300, 70}, Shape{2, 300, 3}, Shape{3, 40, 2, 9}})
      for (int axis = 0; axis < shape.rank(); ++axis) {
        const Tensor x = cast(remainder(counting(shape, DType::f64), dtype == DType::bf16 ? 1 : 7) - 3, dtype);
        const std::vector<double> values = elements(x);
        std::vector<double> sums = values, rest = values;
        const size_t stride = static_cast<size_t>(stride_of(shape, axis)), n = values.size();
        const size_t line = stride * static_cast<size_t>(shape[static_cast<size_t>(axis)]);
        for (size_t i = 0; i < n; ++i)
          if (i % line >= stride) sums[i] += sums[i - stride];
        for (size_t i = n; i-- > 0;)
          if (i % line < line - stride) rest[i] += rest[i + stride];
        const double tolerance = dtype == DType::bf16 ? 0x1p-8 : 0;
        EXPECT_TRUE(close(cumsum(x, axis), shape, sums, tolerance)) << dtype << shape << axis;
        if (dtype != DType::f32 && dtype != DType::f64) continue;
        Tensor leaf = zeros_like(x);
        leaf.requires_grad_();
        cumsum(leaf, axis).backward(x);
        EXPECT_TRUE(close(leaf.grad(), shape, rest)) << dtype << shape << axis;
      }
}

TEST(Everyday, RunningSumsKeepSpecialValuesBehindTheirPlace) {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  std::vector<double> values(300, 1), expected;
  values[100] = inf;
  values[200] = -inf;
  for (int i = 0; i < 300; ++i) expected.push_back(i < 100 ? i + 1 : i < 200 ? inf : nan);
  for (DType dtype : {DType::f32, DType::f64}) {
    EXPECT_TRUE(close(cumsum(of(dtype, values, {300}), 0), {300}, expected)) << dtype;
    const Tensor columns = expand(of(dtype, values, {300, 1}), {300, 20});
    EXPECT_TRUE(close(select(cumsum(contiguous(columns), 0), 1, 7), {300}, expected)) << dtype;
  }
  EXPECT_EQ(cumsum(i64({INT64_MAX, 1, 1}), 0).to_vector<int64_t>(),
            (std::vector<int64_t>{INT64_MAX, INT64_MIN, INT64_MIN + 1}));
}

// 1 + 2^-24 is 1 in f32: a plain running sum would stay 1, however many terms of 2^-24 follow.
TEST(Everyday, RunningSumsOfManyTermsStayAccurate) {
  const int64_t n = 1 << 16;
  const Tensor x = cat({ones({1}, DType::f32), full({n}, 0x1p-24, DType::f32)}, 0);
  EXPECT_NEAR(slice(cumsum(x, 0), 0, n, n + 1).item<float>(), 1 + n * 0x1p-24, 0x1p-16);
  const Tensor columns = contiguous(expand(reshape(x, {n + 1, 1}), {n + 1, 9}));
  EXPECT_NEAR(select(select(cumsum(columns, 0), 0, n), 0, 4).item<float>(), 1 + n * 0x1p-24, 0x1p-16);
}

TEST(Everyday, RunningSumsAndProducts) {
  for (int64_t n : {0, 1, 2, 3, 7, 8, 33}) {
    const std::vector<double> values = spread(3 * n, -2, 2);
    const Tensor x = transpose(f64(values, {n, 3}));
    std::vector<double> sums, products;
    for (int64_t row = 0; row < 3; ++row) {
      double sum = 0, product = 1;
      for (int64_t i = 0; i < n; ++i) {
        sums.push_back(sum += values[static_cast<size_t>(3 * i + row)]);
        products.push_back(product *= values[static_cast<size_t>(3 * i + row)]);
      }
    }
    EXPECT_TRUE(close(cumsum(x, 1), {3, n}, sums, 1e-12)) << n;
    EXPECT_TRUE(close(cumprod(x, -1), {3, n}, products, 1e-12)) << n;
  }
  EXPECT_EQ(cumsum(of(DType::u8, {200, 100}, {2}), 0).to_vector<int64_t>(), (std::vector<int64_t>{200, 300}));
  EXPECT_EQ(cumprod(of(DType::boolean, {1, 0}, {2}), 0).to_vector<int64_t>(), (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(cumsum(full({}, 2), 0).item<float>(), 2);
  const Tensor halves = of(DType::f16, {300, 300, 0.125}, {3});
  EXPECT_TRUE(close(cumprod(halves, 0), {3}, {300, std::numeric_limits<double>::infinity(), 11248}));
  const Tensor one = f64({5});
  EXPECT_FALSE(cumsum(one, 0).is_same(one));
  EXPECT_TRUE(throws(Code::invalid, {"[cumsum]", "axis 2", "rank 1"}, [&] { cumsum(one, 2); }));
}

}  // namespace
}  // namespace plugrad::test
