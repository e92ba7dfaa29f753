#include <plugrad/nn/optimizers.hpp>
#include <plugrad/nn/weight_average.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/runtime/error.hpp>
#include <plugrad/steps/compile.hpp>

#include <gtest/gtest.h>

namespace plugrad {
namespace {

double value(const Tensor& x) { return x.item<double>(); }

TEST(WeightAverage, GivesEachUpdateItsWeight) {
  Tensor x = full({1}, 1).requires_grad_(), y = full({1}, 10, DType::f64).requires_grad_();
  nn::WeightAverage mean({x, y}), decaying({x}, 0.75);
  double wanted = 0;
  for (int i = 0; i < 4; ++i) {
    {
      const NoGrad unrecorded;
      x.fill_(1 << i);
    }
    mean.update();
    decaying.update();
    wanted = i == 0 ? 1 : 0.75 * wanted + 0.25 * (1 << i);
  }
  EXPECT_DOUBLE_EQ(value(mean.averages()[0]), 15 / 4.0);
  EXPECT_DOUBLE_EQ(value(mean.averages()[1]), 10);
  EXPECT_DOUBLE_EQ(value(decaying.averages()[0]), wanted);
  EXPECT_EQ(mean.updates(), 4);
  mean.exchange();
  EXPECT_DOUBLE_EQ(value(x), 15 / 4.0);
  EXPECT_DOUBLE_EQ(value(mean.averages()[0]), 8);
  mean.exchange();
  nn::WeightAverage resumed({x, y});
  resumed.load_state(mean.state());
  mean.update();
  resumed.update();
  EXPECT_DOUBLE_EQ(value(resumed.averages()[0]), value(mean.averages()[0]));
  EXPECT_THROW(resumed.load_state(decaying.state()), Error);
  EXPECT_THROW(nn::WeightAverage({x}, 1.5), Error);
  EXPECT_THROW(nn::WeightAverage({}), Error);
}

TEST(WeightAverage, AveragesInCompiledSteps) {
  const auto train = [](bool compiled) {
    Tensor x = ones({2}).requires_grad_();
    nn::SGD sgd({x}, 0.125);
    nn::WeightAverage mean({x});
    const auto step = [&](const Tensor& target) {
      sgd.zero_grad();
      const Tensor loss = sum((x - target) * (x - target));
      loss.backward();
      sgd.step();
      mean.update();
      return loss;
    };
    auto replayed = compile(step);
    for (int i = 0; i < 6; ++i) {
      const Tensor target = full({2}, i);
      compiled ? replayed(target) : step(target);
    }
    EXPECT_EQ(mean.updates(), 6);
    return mean.averages()[0].to_vector<float>();
  };
  EXPECT_EQ(train(true), train(false));
}

}  // namespace
}  // namespace plugrad
