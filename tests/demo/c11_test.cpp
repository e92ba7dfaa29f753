// The plugin in plain C has the ops of an MLP in f32 and no fused ops. A training on it has the same losses as on other
// devices.
#include <plugrad/nn/activations.hpp>
#include <plugrad/nn/containers.hpp>
#include <plugrad/nn/layers.hpp>
#include <plugrad/nn/optimizers.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/runtime/generator.hpp>
#include <plugrad/runtime/runtime.hpp>
#include <tests/paths.hpp>

#include <gtest/gtest.h>
#include <cmath>
#include <functional>

namespace plugrad {
namespace {

using Make = std::function<std::unique_ptr<nn::Optimizer>(std::vector<Tensor>)>;
constexpr int64_t kRows = 12, kIn = 5, kClasses = 3;

Tensor inputs(Device device) {
  std::vector<float> x;
  for (int i = 0; i < kRows * kIn; ++i) x.push_back(static_cast<float>((i * 37) % 19 - 9) / 8);
  return Tensor::from(x, {kRows, kIn}, device);
}
Tensor targets(Device device) {
  std::vector<int64_t> t;
  for (int i = 0; i < kRows; ++i) t.push_back((i * 5 / 2) % kClasses);
  return Tensor::from(t, {kRows}, device);
}

// The losses of 60 steps on a device. The reference device draws the weights, so that all devices start with the same
// weights.
std::vector<double> losses_on(Device device, const Make& make) {
  manual_seed(17);
  const Device reference("reference");
  nn::Sequential net({std::make_shared<nn::Linear>(kIn, 8, true, DType::f32, reference), std::make_shared<nn::ReLU>(),
                      std::make_shared<nn::Linear>(8, kClasses, true, DType::f32, reference)});
  net.to(device);
  const auto optimizer = make(net.parameters());
  const Tensor x = inputs(device), y = targets(device);
  std::vector<double> losses;
  for (int step = 0; step < 60; ++step) {
    const Tensor loss = cross_entropy(net(x), y);
    losses.push_back(loss.item<float>());
    optimizer->zero_grad();
    loss.backward();
    optimizer->step();
  }
  return losses;
}

class C11 : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_device("c11")) load_plugin(test::test_plugin_path("libplugrad-backend-c11.so"));
  }
  void expect_equal_losses(const Make& make) {
    const Device c11("c11"), reference("reference");
    const std::vector<double> found = losses_on(c11, make), wanted = losses_on(reference, make);
    for (size_t i = 0; i < wanted.size(); ++i)
      ASSERT_NEAR(found[i], wanted[i], 2e-4 * std::max(1.0, wanted[i])) << "step " << i;
    EXPECT_LT(wanted.back(), 0.75 * wanted.front());
    EXPECT_GT(c11.counters().decompositions, 0u);
    EXPECT_EQ(c11.counters().host_fallbacks, 0u);
  }
};

TEST_F(C11, TrainsWithPlainSteps) {
  expect_equal_losses([](std::vector<Tensor> p) { return std::make_unique<nn::SGD>(std::move(p), 0.5); });
}
TEST_F(C11, TrainsWithMomentum) {
  expect_equal_losses([](std::vector<Tensor> p) {
    return std::make_unique<nn::SGD>(std::move(p), 0.1,
                                     nn::SGDOptions{.momentum = 0.9, .weight_decay = 1e-3, .nesterov = true});
  });
}
TEST_F(C11, TrainsWithAdam) {
  expect_equal_losses([](std::vector<Tensor> p) { return std::make_unique<nn::Adam>(std::move(p), 0.05); });
}

TEST_F(C11, HasNoOtherDtypesAndSaysSo) {
  const Device c11("c11");
  try {
    add(full({3}, 1, DType::f64, c11), 1);
    ADD_FAILURE() << "done";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unsupported);
    EXPECT_NE(std::string(error.what()).find("f64"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace plugrad
