// Compares schedules with the rates of PyTorch's schedules, with a momentum of 0.9 and a first rate of 0.5.
#include <plugrad/plugrad.hpp>
#include <tests/core/expect.hpp>

namespace plugrad {
namespace {

using test::throws;
using Schedule = std::unique_ptr<nn::LRScheduler>;
using Rates = std::vector<double>;

struct Row {
  const char* name;
  std::function<Schedule(nn::Optimizer& optimizer)> make;
  std::vector<double> rates;
};

nn::SGD optimizer_of(Tensor& x) { return nn::SGD({x}, 0.5, {.momentum = 0.9}); }

std::vector<Row> rows() {
  return {
      {"StepLR",
       [](nn::Optimizer& o) -> Schedule { return std::make_unique<nn::StepLR>(o, 3, 0.5); },
       {0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125, 0.125, 0.125, 0.0625, 0.0625, 0.0625}},
      {"MultiStepLR",
       [](nn::Optimizer& o) -> Schedule { return std::make_unique<nn::MultiStepLR>(o, std::vector<int64_t>{2, 5, 5}, 0.5); },
       {0.5, 0.5, 0.25, 0.25, 0.25, 0.0625, 0.0625, 0.0625, 0.0625, 0.0625, 0.0625, 0.0625}},
      {"ExponentialLR",
       [](nn::Optimizer& o) -> Schedule { return std::make_unique<nn::ExponentialLR>(o, 0.75); },
       {0.5, 0.375, 0.28125, 0.2109375, 0.158203125, 0.1186523438, 0.08898925781, 0.06674194336, 0.05005645752,
        0.03754234314, 0.02815675735, 0.02111756802}},
      {"LinearLR",
       [](nn::Optimizer& o) -> Schedule { return std::make_unique<nn::LinearLR>(o, 0.25, 1, 4); },
       {0.125, 0.21875, 0.3125, 0.40625, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5}},
      {"ConstantLR",
       [](nn::Optimizer& o) -> Schedule { return std::make_unique<nn::ConstantLR>(o, 0.25, 3); },
       {0.125, 0.125, 0.125, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5}},
      {"PolynomialLR",
       [](nn::Optimizer& o) -> Schedule { return std::make_unique<nn::PolynomialLR>(o, 8, 2); },
       {0.5, 0.3828125, 0.28125, 0.1953125, 0.125, 0.0703125, 0.03125, 0.0078125, 0, 0, 0, 0}},
      {"CosineAnnealingLR",
       [](nn::Optimizer& o) -> Schedule { return std::make_unique<nn::CosineAnnealingLR>(o, 8, 0.1); },
       {0.5, 0.4847759065, 0.4414213562, 0.3765366865, 0.3, 0.2234633135, 0.1585786438, 0.1152240935, 0.1, 0.1152240935,
        0.1585786438, 0.2234633135}},
      {"CosineAnnealingWarmRestarts",
       [](nn::Optimizer& o) -> Schedule { return std::make_unique<nn::CosineAnnealingWarmRestarts>(o, 3, 2, 0.1); },
       {0.5, 0.4, 0.2, 0.5, 0.4732050808, 0.4, 0.3, 0.2, 0.1267949192, 0.5, 0.4931851653, 0.4732050808}},
      {"LambdaLR",
       [](nn::Optimizer& o) -> Schedule {
         return std::make_unique<nn::LambdaLR>(o, [](int64_t epoch) { return 1.0 / (1 + static_cast<double>(epoch)); });
       },
       {0.5, 0.25, 0.1666666667, 0.125, 0.1, 0.08333333333, 0.07142857143, 0.0625, 0.05555555556, 0.05, 0.04545454545,
        0.04166666667}},
      {"OneCycleLR",
       [](nn::Optimizer& o) -> Schedule { return std::make_unique<nn::OneCycleLR>(o, 2, 12); },
       {0.08, 0.6995793084, 1.758570318, 1.988830871, 1.86602594, 1.623491308, 1.294757995, 0.9252742053, 0.5661219964,
        0.2669550604, 0.06913397485, 8e-06}},
      {"OneCycleLR",
       [](nn::Optimizer& o) -> Schedule {
         return std::make_unique<nn::OneCycleLR>(o, 2, 12, nn::OneCycleOptions{.linear = true, .three_phase = true});
       },
       {0.08, 0.8184615385, 1.556923077, 1.704615385, 0.9661538462, 0.2276923077, 0.06896662069, 0.05517489655,
        0.04138317241, 0.02759144828, 0.01379972414, 8e-06}},
      {"CyclicLR",
       [](nn::Optimizer& o) -> Schedule {
         return std::make_unique<nn::CyclicLR>(o, Rates{0.1}, Rates{0.5},
                                               nn::CyclicOptions{.step_size_up = 2, .step_size_down = 3});
       },
       {0.1, 0.3, 0.5, 0.36666666667, 0.23333333333, 0.1, 0.3, 0.5}},
      {"CyclicLR",
       [](nn::Optimizer& o) -> Schedule {
         return std::make_unique<nn::CyclicLR>(
             o, Rates{0.1}, Rates{0.5}, nn::CyclicOptions{.step_size_up = 2, .mode = nn::CyclicOptions::Mode::triangular2});
       },
       {0.1, 0.3, 0.5, 0.3, 0.1, 0.2, 0.3, 0.2, 0.1}},
      {"CyclicLR",
       [](nn::Optimizer& o) -> Schedule {
         return std::make_unique<nn::CyclicLR>(
             o, Rates{0.1}, Rates{0.5},
             nn::CyclicOptions{.step_size_up = 2, .mode = nn::CyclicOptions::Mode::exp_range, .gamma = 0.9});
       },
       {0.1, 0.28, 0.424, 0.2458, 0.1, 0.218098, 0.3125764}}};
}

TEST(Schedules, SetTheRatesOfPyTorch) {
  for (const Row& row : rows()) {
    SCOPED_TRACE(row.name);
    Tensor x = ones({1}).requires_grad_();
    nn::SGD optimizer = optimizer_of(x);
    const Schedule schedule = row.make(optimizer);
    std::vector<double> rates;
    for (size_t epoch = 0; epoch < row.rates.size(); ++epoch) {
      if (epoch) schedule->step();
      rates.push_back(optimizer.rate());
      EXPECT_EQ(schedule->last_epoch(), static_cast<int64_t>(epoch));
    }
    EXPECT_TRUE(test::close(rates, row.rates, 1e-9));
    schedule->set_epoch(2);
    EXPECT_NEAR(schedule->get_last_lr()[0], row.rates[2], 1e-9);
  }
}

TEST(Schedules, FollowOneAnother) {
  Tensor x = ones({1}).requires_grad_();
  nn::SGD optimizer = optimizer_of(x);
  nn::SequentialLR schedule(
      optimizer,
      {std::make_shared<nn::LinearLR>(optimizer, 0.25, 1, 4), std::make_shared<nn::CosineAnnealingLR>(optimizer, 6)}, {4});
  std::vector<double> rates;
  for (int epoch = 0; epoch < 10; ++epoch, schedule.step()) rates.push_back(optimizer.rate());
  EXPECT_TRUE(
      test::close(rates, {0.125, 0.21875, 0.3125, 0.40625, 0.5, 0.4665063509, 0.375, 0.25, 0.125, 0.03349364905}, 1e-9));
}

TEST(Schedules, MoveTheMomentumTheOtherWay) {
  Tensor x = ones({1}).requires_grad_();
  nn::SGD optimizer = optimizer_of(x);
  nn::OneCycleLR schedule(optimizer, 2, 12);
  std::vector<double> momenta{optimizer.option("momentum")};
  for (int epoch = 1; epoch < 4; ++epoch) {
    schedule.step();
    momenta.push_back(optimizer.option("momentum"));
  }
  EXPECT_TRUE(test::close(momenta, {0.95, 0.9177302444, 0.8625744626, 0.8505584587}, 1e-9));
  EXPECT_TRUE(throws(Code::invalid, {"at most total_steps"}, [&] { schedule.set_epoch(13); }));
  nn::SGD plain({x}, 0.5);
  EXPECT_TRUE(throws(Code::invalid, {"cycle_momentum=false"}, [&] { nn::OneCycleLR(plain, 2, 12); }));
}

TEST(Schedules, ReduceTheRateOnAPlateau) {
  Tensor x = ones({1}).requires_grad_();
  nn::SGD optimizer = optimizer_of(x);
  nn::ReduceLROnPlateau schedule(optimizer, {.factor = 0.5, .patience = 1, .cooldown = 1});
  std::vector<double> rates;
  for (const double metric : {5, 4, 4, 4, 4, 4, 4, 3, 3, 3, 3, 3}) {
    schedule.step(metric);
    rates.push_back(optimizer.rate());
  }
  EXPECT_EQ(rates, (std::vector<double>{0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125, 0.125, 0.125, 0.0625, 0.0625, 0.0625}));
  EXPECT_EQ(schedule.best(), 3);
}

TEST(Schedules, KeepTheFirstRateOfEachGroup) {
  Tensor x = ones({1}).requires_grad_(), y = ones({1}).requires_grad_();
  nn::SGD optimizer(std::vector<nn::ParameterGroup>{{{x}}, {{y}, {{"lr", 0.25}}}}, 1);
  const nn::ExponentialLR first(optimizer, 0.5);
  nn::StepLR second(optimizer, 1, 0.5);
  second.set_epoch(2);
  EXPECT_EQ(second.get_last_lr(), (std::vector<double>{0.25, 0.0625}));
  EXPECT_TRUE(throws(Code::invalid, {"[StepLR]"}, [&] { nn::StepLR(optimizer, 0); }));
  EXPECT_TRUE(throws(Code::invalid, {"epoch of 0"}, [&] { second.set_epoch(-1); }));
}

}  // namespace
}  // namespace plugrad
