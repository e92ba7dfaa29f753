// Gradients where a function has no derivative, or where its formula would give 0 * inf. The headers define these gradients.
#include <tests/core/expect.hpp>

#include <cmath>
#include <limits>

namespace plugrad::test {
namespace {
constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();

struct UnaryKink {
  const char* name;
  Tensor (*apply)(const Tensor& x);
  double x, gradient;
};
const UnaryKink kUnary[] = {
    {"relu 0", [](const Tensor& x) { return relu(x); }, 0, 0},
    {"relu -0", [](const Tensor& x) { return relu(x); }, -0.0, 0},
    {"relu NaN", [](const Tensor& x) { return relu(x); }, kNan, 1},
    {"relu smallest", [](const Tensor& x) { return relu(x); }, 5e-324, 1},
    {"relu -inf", [](const Tensor& x) { return relu(x); }, -kInf, 0},
    {"relu inf", [](const Tensor& x) { return relu(x); }, kInf, 1},
    {"abs 0", [](const Tensor& x) { return abs(x); }, 0, 0},
    {"abs -0", [](const Tensor& x) { return abs(x); }, -0.0, 0},
    {"abs NaN", [](const Tensor& x) { return abs(x); }, kNan, kNan},
    {"abs -inf", [](const Tensor& x) { return abs(x); }, -kInf, -1},
    {"sign 0", [](const Tensor& x) { return sign(x); }, 0, 0},
    {"sqrt 0", [](const Tensor& x) { return sqrt(x); }, 0, kInf},
    {"log 0", [](const Tensor& x) { return log(x); }, 0, kInf},
    {"tanh inf", [](const Tensor& x) { return tanh(x); }, kInf, 0},
    {"sigmoid -inf", [](const Tensor& x) { return sigmoid(x); }, -kInf, 0},
    {"sigmoid -800", [](const Tensor& x) { return sigmoid(x); }, -800, 0},
    {"exp -inf", [](const Tensor& x) { return exp(x); }, -kInf, 0},
    {"maximum with an equal number", [](const Tensor& x) { return maximum(x, 3); }, 3, 0.5},
    {"minimum with an equal number", [](const Tensor& x) { return minimum(x, 3); }, 3, 0.5},
    {"0 ** 0", [](const Tensor& x) { return pow(x, 0); }, 0, 0},
    {"NaN ** 0", [](const Tensor& x) { return pow(x, 0); }, kNan, 0},
    {"0 ** 1", [](const Tensor& x) { return pow(x, 1); }, 0, 1},
    {"0 ** 2", [](const Tensor& x) { return pow(x, 2); }, 0, 0},
    {"0 ** 3", [](const Tensor& x) { return pow(x, 3); }, 0, 0},
    {"0 ** 0.5", [](const Tensor& x) { return pow(x, 0.5); }, 0, kInf},
    {"(-2) ** 3", [](const Tensor& x) { return pow(x, 3); }, -2, 12},
    {"0 ** x at 0", [](const Tensor& x) { return pow(0, x); }, 0, 0},
    {"0 ** x at 2", [](const Tensor& x) { return pow(0, x); }, 2, 0},
    {"1 ** x", [](const Tensor& x) { return pow(1, x); }, 5, 0},
    {"(-1) ** x", [](const Tensor& x) { return pow(-1, x); }, 2, kNan},
    {"where keeps NaN of the other branch away", [](const Tensor& x) { return where(gt(x, 1), log(x), 0); }, 0.5, 0},
};

TEST(Kinks, GradientsOfOneTensor) {
  for (bool create_graph : {false, true})
    for (const UnaryKink& each : kUnary) {
      const Tensor x = f64({each.x}).requires_grad_();
      const Tensor gradient = grad({each.apply(x)}, {x}, {.create_graph = create_graph})[0];
      EXPECT_TRUE(close(gradient, {1}, {each.gradient})) << each.name << (create_graph ? ", with a graph" : "");
    }
}

struct BinaryKink {
  const char* name;
  Tensor (*apply)(const Tensor& a, const Tensor& b);
  double a, b, gradient_a, gradient_b;
};
const BinaryKink kBinary[] = {
    {"maximum of equal", [](const Tensor& a, const Tensor& b) { return maximum(a, b); }, 2, 2, 0.5, 0.5},
    {"maximum of 0 and -0", [](const Tensor& a, const Tensor& b) { return maximum(a, b); }, 0, -0.0, 0.5, 0.5},
    {"minimum of equal", [](const Tensor& a, const Tensor& b) { return minimum(a, b); }, 2, 2, 0.5, 0.5},
    {"minimum of infinities", [](const Tensor& a, const Tensor& b) { return minimum(a, b); }, kInf, kInf, 0.5, 0.5},
    {"0 ** 0", [](const Tensor& a, const Tensor& b) { return pow(a, b); }, 0, 0, 0, 0},
    {"0 ** 1", [](const Tensor& a, const Tensor& b) { return pow(a, b); }, 0, 1, 1, 0},
    {"0 ** 2", [](const Tensor& a, const Tensor& b) { return pow(a, b); }, 0, 2, 0, 0},
    {"2 ** 0", [](const Tensor& a, const Tensor& b) { return pow(a, b); }, 2, 0, 0, std::log(2.0)},
    {"(-2) ** 2", [](const Tensor& a, const Tensor& b) { return pow(a, b); }, -2, 2, -4, kNan},
    {"1 ** inf", [](const Tensor& a, const Tensor& b) { return pow(a, b); }, 1, kInf, kInf, 0},
};

TEST(Kinks, GradientsOfTwoTensors) {
  for (const BinaryKink& each : kBinary) {
    const Tensor a = f64({each.a}).requires_grad_(), b = f64({each.b}).requires_grad_();
    const auto gradients = grad({each.apply(a, b)}, {a, b});
    EXPECT_TRUE(close(gradients[0], {1}, {each.gradient_a}, 1e-15)) << each.name;
    EXPECT_TRUE(close(gradients[1], {1}, {each.gradient_b}, 1e-15)) << each.name;
  }
}

TEST(Kinks, TheLargestAndTheSmallestAreNamedAsTheyWereAskedFor) {
  Tensor x = Tensor::from<float>({1, 2}, {2});
  x.requires_grad_();
  EXPECT_STREQ(max(x).op_name(), "max");
  EXPECT_STREQ(min(x).op_name(), "min");
}

TEST(Kinks, TiesShareTheGradientOfMaxAndMinEqually) {
  const Tensor x = f64({3, 1, 3, 2, 3, 3}, {2, 3}).requires_grad_();
  EXPECT_TRUE(close(grad({max(x)}, {x})[0], {2, 3}, {0.25, 0, 0.25, 0, 0.25, 0.25}));
  EXPECT_TRUE(close(grad({sum(max(x, {1}))}, {x})[0], {2, 3}, {0.5, 0, 0.5, 0, 0.5, 0.5}));
  EXPECT_TRUE(close(grad({sum(max(x, {0}, true))}, {x})[0], {2, 3}, {1, 0, 0.5, 0, 1, 0.5}));
  const Tensor low = f64({0, -0.0, 1}).requires_grad_();
  EXPECT_TRUE(close(grad({min(low)}, {low})[0], {3}, {0.5, 0.5, 0}));
}

TEST(Kinks, SecondDerivativesAtRegularPointsOfPowers) {
  const Tensor x = f64({0, 0, -2}).requires_grad_();
  const Tensor first = grad({sum(pow(x, f64({2, 3, 2})))}, {x}, {.create_graph = true})[0];
  EXPECT_TRUE(close(grad({sum(first)}, {x})[0], {3}, {2, 0, 2}));
  const Tensor a = f64({0, 0}).requires_grad_(), b = f64({2, 3.5}).requires_grad_();
  const auto both = grad({sum(pow(a, b))}, {a, b}, {.create_graph = true});
  const auto seconds = grad({sum(both[0] + both[1])}, {a, b});
  EXPECT_TRUE(close(seconds[0], {2}, {2, 0}));
  EXPECT_TRUE(close(seconds[1], {2}, {0, 0}));
}

}  // namespace
}  // namespace plugrad::test
