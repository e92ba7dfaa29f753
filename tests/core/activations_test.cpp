// Compares activation functions with formulas of one number, and checks their gradients at kinks.
#include <tests/core/expect.hpp>

#include <cmath>
#include <limits>
#include <numbers>

namespace plugrad::test {
namespace {
constexpr double kInf = HUGE_VAL, kNan = std::numeric_limits<double>::quiet_NaN();

struct Row {
  const char* name;
  Tensor (*apply)(const Tensor& x);
  double (*expected)(double x);
};
double normal_distribution(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }
const Row kRows[] = {
    {"silu", [](const Tensor& x) { return silu(x); }, [](double x) { return x / (1 + std::exp(-x)); }},
    {"gelu", [](const Tensor& x) { return gelu(x); }, [](double x) { return x * normal_distribution(x); }},
    {"gelu tanh", [](const Tensor& x) { return gelu(x, Approximation::tanh); },
     [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x))); }},
    {"softplus", [](const Tensor& x) { return softplus(x); }, [](double x) { return std::log1p(std::exp(x)); }},
    {"softplus beta", [](const Tensor& x) { return softplus(x, 3, 6); },
     [](double x) { return 3 * x > 6 ? x : std::log1p(std::exp(3 * x)) / 3; }},
    {"leaky_relu", [](const Tensor& x) { return leaky_relu(x); }, [](double x) { return x > 0 ? x : 0.01 * x; }},
    {"elu", [](const Tensor& x) { return elu(x, 2); }, [](double x) { return x > 0 ? x : 2 * std::expm1(x); }},
    {"hardtanh", [](const Tensor& x) { return hardtanh(x); }, [](double x) { return std::max(-1.0, std::min(1.0, x)); }},
    {"clamp", [](const Tensor& x) { return clamp(x, -0.5, 2); }, [](double x) { return std::max(-0.5, std::min(2.0, x)); }},
    {"clamp below", [](const Tensor& x) { return clamp(x, 1); }, [](double x) { return std::max(1.0, x); }},
    {"clamp crossed", [](const Tensor& x) { return clamp(x, 2, 1); }, [](double) { return 1.0; }},
};

TEST(Activations, EqualTheirFormulas) {
  const Shape shape = {4, 6};
  const std::vector<double> values = spread(24, -6, 6);
  for (const Row& row : kRows) {
    std::vector<double> expected;
    for (double value : values) expected.push_back(row.expected(value));
    EXPECT_TRUE(close(row.apply(f64(values, shape)), shape, expected, 1e-14)) << row.name;
    EXPECT_TRUE(close(row.apply(of(DType::f32, values, shape)), shape, expected, 1e-6)) << row.name;
    EXPECT_TRUE(close(row.apply(of(DType::bf16, values, shape)), shape, expected, 0.05)) << row.name;
    EXPECT_TRUE(close(transpose(row.apply(transpose(f64(values, shape)))), shape, expected, 1e-14)) << row.name;
    EXPECT_TRUE(close(row.apply(f64({values[0]}, {})), {}, {expected[0]}, 1e-14)) << row.name;
    EXPECT_TRUE(close(row.apply(zeros({0, 3})), {0, 3}, {})) << row.name;
    EXPECT_TRUE(close(row.apply(of(DType::f32, {kNan}, {1})), {1}, {kNan})) << row.name;
  }
}

// Relative accuracy where 1 + e^x and e^x - 1 lose digits.
TEST(Activations, AreAccurateNearZeroAndFarAway) {
  for (double x : {-80.0, -40.0, -17.0, -1e-3, -1e-7, -1e-12}) {
    const double single = static_cast<float>(x);
    EXPECT_NEAR(softplus(of(DType::f32, {x}, {1})).item<double>() / std::log1p(std::exp(single)), 1, 1e-6) << x;
    EXPECT_NEAR(elu(of(DType::f32, {x}, {1})).item<double>() / std::expm1(single), 1, 1e-6) << x;
    EXPECT_NEAR(softplus(f64({x})).item<double>() / std::log1p(std::exp(x)), 1, 1e-14) << x;
    EXPECT_NEAR(elu(f64({x})).item<double>() / std::expm1(x), 1, 1e-14) << x;
  }
  EXPECT_TRUE(close(softplus(f64({-kInf, -1e4, 1e4, kInf})), {4}, {0, 0, 1e4, kInf}));
  EXPECT_TRUE(close(elu(f64({-kInf, -1e4, 1e4, kInf})), {4}, {-1, -1, 1e4, kInf}));
}

struct Kink {
  const char* name;
  Tensor (*apply)(const Tensor& x);
  double x, gradient;
};
const Kink kKinks[] = {
    {"leaky_relu 0", [](const Tensor& x) { return leaky_relu(x, 0.25); }, 0, 0.25},
    {"elu 0", [](const Tensor& x) { return elu(x, 0.5); }, 0, 0.5},
    {"elu 1000", [](const Tensor& x) { return elu(x); }, 1000, 1},
    {"softplus 1000", [](const Tensor& x) { return softplus(x); }, 1000, 1},
    {"softplus -1000", [](const Tensor& x) { return softplus(x); }, -1000, 0},
    {"hardtanh -1", [](const Tensor& x) { return hardtanh(x); }, -1, 0},
    {"hardtanh 1", [](const Tensor& x) { return hardtanh(x); }, 1, 0},
    {"hardtanh 0", [](const Tensor& x) { return hardtanh(x); }, 0, 1},
    {"clamp at min", [](const Tensor& x) { return clamp(x, 1, 2); }, 1, 0},
    {"clamp at max", [](const Tensor& x) { return clamp(x, 1, 2); }, 2, 0},
    {"clamp below", [](const Tensor& x) { return clamp(x, 1, 2); }, 0.5, 0},
    {"clamp above", [](const Tensor& x) { return clamp(x, {}, 2); }, 2.5, 0},
};

TEST(Activations, GradientsAtKinks) {
  for (bool create_graph : {false, true})
    for (const Kink& each : kKinks) {
      const Tensor x = f64({each.x}).requires_grad_();
      const Tensor first = grad({each.apply(x)}, {x}, {.create_graph = create_graph})[0];
      EXPECT_TRUE(close(first, {1}, {each.gradient})) << each.name;
      if (!create_graph || !first.requires_grad()) continue;
      const Tensor second = grad({first}, {x}, {.allow_unused = true})[0];
      EXPECT_TRUE(!second.defined() || std::isfinite(second.item<double>())) << each.name;
    }
}

TEST(Activations, SoftmaxAlongEachAxis) {
  const Shape shape = {2, 3, 4};
  const std::vector<double> values = spread(24, -3, 3);
  for (int axis = 0; axis < 3; ++axis) {
    std::vector<double> expected;
    for (const Shape& at : positions(shape)) {
      double total = 0;
      Shape other = at;
      const size_t along = static_cast<size_t>(axis);
      for (other[along] = 0; other[along] < shape[along]; ++other[along])
        total += std::exp(values[static_cast<size_t>(offset(other, shape))]);
      expected.push_back(std::exp(values[static_cast<size_t>(offset(at, shape))]) / total);
    }
    EXPECT_TRUE(close(softmax(f64(values, shape), axis), shape, expected, 1e-14));
    EXPECT_TRUE(close(softmax(f64(values, shape), axis - 3), shape, expected, 1e-14));
    EXPECT_TRUE(close(softmax(of(DType::bf16, values, shape), axis), shape, expected, 0.02));
  }
  EXPECT_TRUE(close(softmax(f64({1000, 1000, -kInf}), 0), {3}, {0.5, 0.5, 0}, 1e-12));
  EXPECT_TRUE(close(softmax(zeros({2, 0}), 1), {2, 0}, {}));
}

TEST(Activations, ErrorsNameTheFunction) {
  const Tensor whole = i64({1, 2});
  EXPECT_TRUE(throws(Code::invalid, {"[softmax]", "i64", "floating"}, [&] { softmax(whole, 0); }));
  EXPECT_TRUE(throws(Code::invalid, {"[softmax]", "axis 1"}, [] { softmax(f64({1}), 1); }));
  EXPECT_TRUE(throws(Code::invalid, {"[gelu]", "undefined"}, [] { gelu({}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[silu]", "i64"}, [&] { silu(whole); }));
  EXPECT_TRUE(throws(Code::invalid, {"[clamp]", "no bound"}, [&] { clamp(whole); }));
  EXPECT_TRUE(throws(Code::invalid, {"[clamp]", "bool", "numbers"}, [&] { clamp(eq(whole, 1), 0); }));
  EXPECT_TRUE(throws(Code::invalid, {"[softplus]", "beta"}, [] { softplus(f64({1}), 0); }));
  EXPECT_TRUE(throws(Code::invalid, {"[hardtanh]", "min_val"}, [] { hardtanh(f64({1}), 2, 1); }));
  EXPECT_TRUE(close(clamp(whole, 2), {2}, {2, 2}));
}

}  // namespace
}  // namespace plugrad::test
