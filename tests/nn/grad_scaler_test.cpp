// The factor of a GradScaler over steps with and without infinities.
#include <plugrad/plugrad.hpp>
#include <tests/core/expect.hpp>

#include <cmath>
#include <limits>

namespace plugrad {
namespace {
using nn::GradScaler;
using test::close;
using test::throws;
constexpr double kInf = std::numeric_limits<double>::infinity();

Tensor parameter() { return ones({2}).requires_grad_(); }

// A scaled backward pass with the gradient `slope`, and a step.
bool step(GradScaler& scaler, nn::Optimizer& optimizer, const Tensor& x, double slope) {
  optimizer.zero_grad();
  scaler.scale(sum(mul(x, slope))).backward();
  return scaler.step(optimizer);
}

TEST(GradScaler, StepsByTheUnscaledGradient) {
  Tensor x = parameter();
  nn::SGD optimizer({x}, 0.5);
  GradScaler scaler({.init_scale = 1024});
  EXPECT_TRUE(step(scaler, optimizer, x, 3));
  EXPECT_TRUE(close(x.grad(), {2}, {3, 3}));
  EXPECT_TRUE(close(x.detach(), {2}, {-0.5, -0.5}));
}

TEST(GradScaler, SkipsInfiniteStepsAndAdapts) {
  Tensor x = parameter();
  nn::SGD optimizer({x}, 0.5);
  GradScaler scaler({.init_scale = 8, .growth_factor = 4, .backoff_factor = 0.25, .growth_interval = 2});
  std::vector<double> factors;
  for (const double slope : {1.0, 1.0, kInf, 1.0, std::numeric_limits<double>::quiet_NaN(), 1.0, 1.0}) {
    const std::vector<double> before = test::elements(x.detach());
    const bool stepped = step(scaler, optimizer, x, slope);
    EXPECT_EQ(stepped, std::isfinite(slope));
    EXPECT_EQ(test::elements(x.detach()) != before, stepped);
    scaler.update();
    factors.push_back(scaler.get_scale());
  }
  EXPECT_EQ(factors, (std::vector<double>{8, 32, 8, 8, 2, 2, 8}));
}

TEST(GradScaler, LetsGradientsBeClippedBetween) {
  Tensor x = parameter();
  nn::SGD optimizer({x}, 1);
  GradScaler scaler({.init_scale = 256});
  scaler.scale(sum(mul(x, 30))).backward();
  scaler.unscale_(optimizer);
  clip_grad_value_({x}, 2);
  EXPECT_TRUE(scaler.step(optimizer));
  EXPECT_TRUE(close(x.detach(), {2}, {-1, -1}));
}

TEST(GradScaler, RestoresItsState) {
  GradScaler scaler({.growth_interval = 2});
  scaler.load_state(512, 1);
  Tensor x = parameter();
  nn::SGD optimizer({x}, 1);
  step(scaler, optimizer, x, 1);
  scaler.update();
  EXPECT_EQ(scaler.get_scale(), 1024);
  EXPECT_EQ(scaler.growth_tracker(), 0);
}

TEST(GradScaler, DoesNothingIfSwitchedOff) {
  Tensor x = parameter();
  nn::SGD optimizer({x}, 0.5);
  GradScaler scaler({.enabled = false});
  EXPECT_TRUE(step(scaler, optimizer, x, 2));
  scaler.update();
  EXPECT_TRUE(close(x.detach(), {2}, {0, 0}));
  EXPECT_EQ(scaler.get_scale(), 1);
}

TEST(GradScaler, RefusesWhatCannotBe) {
  Tensor x = parameter(), half = ones({2}, DType::f16).requires_grad_();
  nn::SGD optimizer({x}, 1), of_halves({half}, 1);
  GradScaler scaler;
  EXPECT_TRUE(throws(Code::invalid, {"[GradScaler] update was called without a step"}, [&] { scaler.update(); }));
  step(scaler, optimizer, x, 1);
  EXPECT_TRUE(throws(Code::invalid, {"[GradScaler] step was called"}, [&] { scaler.step(optimizer); }));
  EXPECT_TRUE(throws(Code::invalid, {"[GradScaler] unscale_ was called"}, [&] { scaler.unscale_(optimizer); }));
  sum(half).backward();
  EXPECT_TRUE(throws(Code::invalid, {"keep its parameter in f32"}, [&] { scaler.unscale_(of_halves); }));
  EXPECT_TRUE(throws(Code::invalid, {"[GradScaler] the factor is 0"}, [] { GradScaler({.init_scale = 0}); }));
  EXPECT_TRUE(throws(Code::invalid, {"growth_factor"}, [] { GradScaler({.growth_factor = 1}); }));
  EXPECT_TRUE(throws(Code::invalid, {"backoff_factor"}, [] { GradScaler({.backoff_factor = 1}); }));
  EXPECT_TRUE(throws(Code::invalid, {"growth_interval"}, [] { GradScaler({.growth_interval = 0}); }));
}

}  // namespace
}  // namespace plugrad
