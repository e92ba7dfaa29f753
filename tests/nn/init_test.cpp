// Initialisers: bounds, moments, and refused arguments.
#include <plugrad/plugrad.hpp>
#include <tests/core/expect.hpp>

#include <algorithm>
#include <cmath>

namespace plugrad {
namespace {

using test::throws;

struct Row {
  const char* name;
  std::function<Tensor(Tensor)> fill;
  double mean, deviation, low, high;  // of the distribution
};

TEST(Init, DrawsFromTheDistributionsOfTheirFormulas) {
  namespace init = nn::init;
  constexpr double kFar = HUGE_VAL;
  const double xavier = std::sqrt(2.0 / (60 * 6 + 100 * 6)), he = std::sqrt(2.0 / (60 * 6)),
               out = std::sqrt(1.0 / (100 * 6));
  const Row rows[] = {
      {"uniform", [](Tensor x) { return init::uniform_(x, -2, 4); }, 1, 6 / std::sqrt(12.0), -2, 4},
      {"normal", [](Tensor x) { return init::normal_(x, 3, 0.5); }, 3, 0.5, -kFar, kFar},
      {"truncated", [](Tensor x) { return init::trunc_normal_(x, 0, 1, -1, 1); }, 0, 0.5396, -1, 1},
      {"xavier uniform", [](Tensor x) { return init::xavier_uniform_(x, 2); }, 0, 2 * xavier, -3.47 * xavier, 3.47 * xavier},
      {"xavier normal", [](Tensor x) { return init::xavier_normal_(x); }, 0, xavier, -kFar, kFar},
      {"kaiming uniform", [](Tensor x) { return init::kaiming_uniform_(x); }, 0, he, -1.74 * he, 1.74 * he},
      {"kaiming normal", [](Tensor x) { return init::kaiming_normal_(x, 0, init::Fan::out, init::Nonlinearity::linear); }, 0,
       out, -kFar, kFar}};
  manual_seed(5);
  for (const Row& row : rows) {
    Tensor x = zeros({100, 60, 2, 3}).requires_grad_();
    EXPECT_TRUE(row.fill(x).is_same(x)) << row.name;
    EXPECT_TRUE(x.is_leaf() && x.requires_grad());
    const std::vector<double> drawn = test::elements(x.detach());
    double sum = 0, squares = 0;
    for (const double each : drawn) sum += each, squares += (each - row.mean) * (each - row.mean);
    const double n = static_cast<double>(drawn.size());
    EXPECT_NEAR(sum / n, row.mean, 5 * row.deviation / std::sqrt(n)) << row.name;
    EXPECT_NEAR(std::sqrt(squares / n), row.deviation, 0.02 * row.deviation) << row.name;
    EXPECT_GE(*std::ranges::min_element(drawn), row.low) << row.name;
    EXPECT_LE(*std::ranges::max_element(drawn), row.high) << row.name;
  }
}

TEST(Init, MakesOrthogonalMatrices) {
  for (const Shape& shape : {Shape{3, 5}, Shape{5, 3}, Shape{4, 2, 2}}) {
    Tensor x = zeros(shape, DType::f64, "cpu");
    nn::init::orthogonal_(x, 2);
    const Tensor flat = reshape(x, {shape[0], -1});
    const bool wide = flat.size(0) <= flat.size(1);
    const Tensor product = wide ? matmul(flat, transpose(flat)) : matmul(transpose(flat), flat);
    const Tensor expected = mul(eye(product.size(0), -1, DType::f64, "cpu"), 4);
    EXPECT_TRUE(test::close(test::elements(product), test::elements(expected), 1e-12)) << shape;
  }
}

TEST(Init, FillsAndRefuses) {
  namespace init = nn::init;
  EXPECT_EQ(test::elements(init::constant_(zeros({3}), 2.5)), (std::vector<double>{2.5, 2.5, 2.5}));
  EXPECT_EQ(test::elements(init::eye_(ones({2, 3}))), (std::vector<double>{1, 0, 0, 0, 1, 0}));
  EXPECT_TRUE(throws(Code::invalid, {"[uniform_]", "integers"}, [] { init::uniform_(zeros({2}, DType::i64)); }));
  EXPECT_TRUE(throws(Code::invalid, {"[xavier_normal_]", "(3,)"}, [] { init::xavier_normal_(zeros({3})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[normal_] std"}, [] { init::normal_(zeros({3}), 0, -1); }));
  EXPECT_TRUE(throws(Code::invalid, {"[eye_]"}, [] { init::eye_(zeros({3})); }));
  EXPECT_DOUBLE_EQ(init::calculate_gain(init::Nonlinearity::leaky_relu, 2), std::sqrt(0.4));
}

}  // namespace
}  // namespace plugrad
