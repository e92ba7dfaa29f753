// Layers and modules: formulas, bounds, devices.
#include <plugrad/plugrad.hpp>
#include <tests/core/expect.hpp>

#include <algorithm>

namespace plugrad {
namespace {

using nn::NamedTensor;
using Numbers = std::vector<double>;

Numbers numbers_of(const Tensor& x) { return cast(x, DType::f64).to_vector<double>(); }

nn::Sequential network(DType dtype, Device device = default_device()) {
  return nn::Sequential({std::make_shared<nn::Linear>(3, 4, true, dtype, device), std::make_shared<nn::Tanh>(),
                         std::make_shared<nn::Linear>(4, 2, false, dtype, device)});
}

TEST(Modules, NameTheirParametersAndThemselves) {
  const nn::Sequential net = network(DType::f32);
  EXPECT_EQ(net.text(), "Sequential(Linear(3, 4), Tanh(), Linear(4, 2, bias=false))");
  std::vector<std::string> names;
  for (const NamedTensor& each : net.named_parameters()) names.push_back(each.name + " " + each.tensor.shape().text());
  EXPECT_EQ(names, (std::vector<std::string>{"0.weight (4, 3)", "0.bias (4,)", "2.weight (2, 4)"}));
  EXPECT_EQ(net.parameters().size(), 3u);
  EXPECT_EQ(net.size(), 3u);
  const nn::Sequential nested(
      {std::make_shared<nn::Sequential>(net), std::make_shared<nn::ReLU>(), std::make_shared<nn::Sigmoid>()});
  EXPECT_EQ(nested.named_parameters()[2].name, "0.2.weight");
  EXPECT_EQ(nested.text(), "Sequential(Sequential(Linear(3, 4), Tanh(), Linear(4, 2, bias=false)), ReLU(), Sigmoid())");
}

TEST(Modules, ALinearIsItsFormula) {
  manual_seed(2);
  const nn::Linear linear(3, 2, true, DType::f64);
  const Numbers w = numbers_of(linear.weight), b = numbers_of(linear.bias), x{1, -2, 0.5, 4, 0, -1};
  const Numbers y = numbers_of(linear(Tensor::from(x, {2, 3})));
  for (size_t row = 0; row < 2; ++row)
    for (size_t out = 0; out < 2; ++out) {
      double sum = b[out];
      for (size_t in = 0; in < 3; ++in) sum += x[row * 3 + in] * w[out * 3 + in];
      EXPECT_NEAR(y[row * 2 + out], sum, 1e-15);
    }
  EXPECT_EQ(linear(full({5, 7, 3}, 1, DType::f64)).shape(), Shape({5, 7, 2}));
  EXPECT_EQ(linear(full({3}, 1, DType::f64)).shape(), Shape({2}));
  EXPECT_EQ(linear(full({0, 3}, 1, DType::f64)).shape(), Shape({0, 2}));
  EXPECT_THROW(linear(full({2, 4}, 1, DType::f64)), Error);
  EXPECT_THROW(linear(Tensor()), Error);
  EXPECT_THROW(nn::Linear(0, 3), Error);
}

TEST(Modules, ALinearStartsUniformWithinItsBound) {
  manual_seed(4);
  const nn::Linear linear(100, 300, true, DType::f64);
  for (const Tensor& each : linear.parameters()) {
    double low = 1, high = -1, sum = 0;
    for (const double value : numbers_of(each)) {
      low = std::min(low, value);
      high = std::max(high, value);
      sum += value;
    }
    EXPECT_GE(low, -0.1);
    EXPECT_LT(low, -0.09);
    EXPECT_LE(high, 0.1);
    EXPECT_GT(high, 0.09);
    EXPECT_NEAR(sum / static_cast<double>(each.count()), 0, 0.02);
    EXPECT_TRUE(each.requires_grad());
  }
}

TEST(Modules, MoveWithTheirOptimizer) {
  const Device home = default_device(), away = home.name() == "reference:0" ? Device("cpu") : Device("reference");
  manual_seed(9);
  nn::Sequential moving = network(DType::f64), staying = network(DType::f64);
  {
    const NoGrad unrecorded;
    for (size_t i = 0; i < 3; ++i) staying.parameters()[i].copy_(moving.parameters()[i]);
  }
  nn::Adam a(moving.parameters(), 0.05), b(staying.parameters(), 0.05);
  const auto step = [](nn::Sequential& net, nn::Optimizer& optimizer, Device device) {
    optimizer.zero_grad();
    const Tensor x = Tensor::from(Numbers{1, 2, 3, -1, 0, 1}, {2, 3}, device);
    const Tensor loss = sum(pow(net(x), 2));
    loss.backward();
    optimizer.step();
    return loss.item<double>();
  };
  for (const Device& device : {home, away, away, home}) {
    moving.to(device);
    for (const Tensor& each : moving.parameters()) {
      EXPECT_EQ(each.device(), device);
      EXPECT_TRUE(each.is_leaf() && each.requires_grad());
    }
    for (int i = 0; i < 3; ++i) EXPECT_NEAR(step(moving, a, device), step(staying, b, home), 1e-12);
  }
}

TEST(Modules, ForgetTheirGradients) {
  nn::Sequential net = network(DType::f32);
  sum(net(full({1, 3}, 1))).backward();
  for (const Tensor& each : net.parameters()) EXPECT_TRUE(each.grad().defined());
  net.zero_grad();
  for (const Tensor& each : net.parameters()) EXPECT_FALSE(each.grad().defined());
}

}  // namespace
}  // namespace plugrad
