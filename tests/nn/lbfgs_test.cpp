// L-BFGS finds minima with PyTorch's number of evaluations.
#include <plugrad/nn/lbfgs.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/parts.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/runtime/error.hpp>

#include <gtest/gtest.h>
#include <stdexcept>

namespace plugrad {
namespace {

Tensor rosenbrock(const Tensor& x) {
  const Tensor a = narrow(x, 0, 0, x.count() - 1), b = narrow(x, 0, 1, x.count() - 1) - a * a;
  return sum((1 - a) * (1 - a) + 100 * (b * b));
}

TEST(Lbfgs, FindsTheMinimumOfRosenbrocksFunction) {
  Tensor x = Tensor::from(std::vector<double>{-1.2, 1}, {2}).requires_grad_();
  nn::LBFGS lbfgs({x}, 1, {.max_iter = 100, .tolerance_grad = 1e-9, .tolerance_change = 1e-14, .strong_wolfe = true});
  const auto closure = [&] {
    lbfgs.zero_grad();
    const Tensor loss = rosenbrock(x);
    loss.backward();
    return loss;
  };
  EXPECT_DOUBLE_EQ(lbfgs.step(closure).item<double>(), 24.2);
  EXPECT_LT(lbfgs.step(closure).item<double>(), 1e-15);
  EXPECT_EQ(lbfgs.steps(), 2);
  EXPECT_LE(lbfgs.evaluations(), 47);  // PyTorch 2.15: 46, and one for the second step
  EXPECT_NEAR(sum(x).item<double>(), 2, 1e-7);
}

TEST(Lbfgs, TreatsAllParametersAsOneVector) {
  Tensor x = Tensor::from(std::vector<double>{-1.2, 1, 0.5}, {3}).requires_grad_();
  Tensor a = Tensor::from(std::vector<double>{-1.2}, {1, 1}).requires_grad_();
  Tensor b = Tensor::from(std::vector<double>{1, 0.5}, {2}).requires_grad_();
  nn::LBFGS whole({x}, 1, {.strong_wolfe = true}), parts({a, b}, 1, {.strong_wolfe = true});
  const auto loss_of = [](nn::LBFGS& of, const auto& place) {
    return of.step([&] {
      of.zero_grad();
      const Tensor loss = rosenbrock(place());
      loss.backward();
      return loss;
    });
  };
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(loss_of(whole, [&] { return x; }).item<double>(),
              loss_of(parts, [&] { return cat({reshape(a, {1}), b}); }).item<double>());
  EXPECT_EQ(b.to_vector<double>()[1], x.to_vector<double>()[2]);
}

TEST(Lbfgs, RefusesWhatMakesNoSense) {
  Tensor x = ones({2}).requires_grad_(), y = ones({2}, DType::f64).requires_grad_();
  EXPECT_THROW(nn::LBFGS({x, y}), Error);
  EXPECT_THROW(nn::LBFGS({nn::ParameterGroup{{x}}, nn::ParameterGroup{{ones({1}).requires_grad_()}}}), Error);
  EXPECT_THROW(nn::LBFGS({x}, 0), Error);
  EXPECT_THROW(nn::LBFGS({x}, 1, {.max_iter = 0}), Error);
  nn::LBFGS lbfgs({x});
  EXPECT_THROW(static_cast<nn::Optimizer&>(lbfgs).step(), Error);
  EXPECT_THROW(lbfgs.step([]() -> Tensor { throw std::runtime_error("no loss"); }), std::runtime_error);
  EXPECT_THROW(lbfgs.load_state({}, 1), Error);
}

}  // namespace
}  // namespace plugrad
