// Compares optimisers with loops in double precision that follow PyTorch's formulas.
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/nn/optimizers.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/update.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/generator.hpp>
#include <plugrad/runtime/runtime.hpp>
#include <tests/nn/optimizer_formulas.hpp>
#include <tests/paths.hpp>

#include <gtest/gtest.h>
#include <cmath>
#include <limits>

namespace plugrad {
namespace {

using nn::NamedTensor;
using test::gradient;
using test::kStart;
using test::Numbers;
constexpr int kSteps = 25;

Numbers numbers_of(const Tensor& x) { return cast(x, DType::f64).to_vector<double>(); }
Tensor tensor_of(const Numbers& values, DType dtype, Device device = default_device()) {
  if (dtype == DType::f64) return Tensor::from(values, {static_cast<int64_t>(values.size())}, device);
  return Tensor::from(std::vector<float>(values.begin(), values.end()), {static_cast<int64_t>(values.size())}, device);
}

void expect_all_near(const Numbers& found, const Numbers& wanted, double tolerance) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_NEAR(found[i], wanted[i], tolerance * std::max(1.0, std::abs(wanted[i]))) << i;
}

void expect_formula(const test::Formula& formula, DType dtype, Device device) {
  SCOPED_TRACE(std::string(formula.name) + " in " + dtype_name(dtype) + " on " + device.name());
  Tensor x = tensor_of(kStart, dtype, device).requires_grad_();
  Numbers p = kStart;
  const test::Loop loop = formula.loop();
  const auto optimizer = formula.make({x});
  for (int step = 1; step <= kSteps; ++step) {
    x.set_grad(tensor_of(gradient(step), dtype, device));
    optimizer->step();
    loop(p, gradient(step), step);
    expect_all_near(numbers_of(x), p, dtype == DType::f64 ? 1e-13 : 4e-6);
    EXPECT_EQ(optimizer->steps(), step);
    expect_all_near(numbers_of(x.grad()), gradient(step), 0);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Optimizers, FollowTheFormulasOfPyTorch) {
  for (const test::Formula& formula : test::formulas())
    for (const DType dtype : {DType::f32, DType::f64}) expect_formula(formula, dtype, default_device());
}

// A sim device without kernels for the fused steps: the compositions give the same results.
Device without_fused_steps() {
  if (!has_device("sim")) load_plugin(test::test_plugin_path("libplugrad-backend-sim.so"));
  static const bool once = (set_device_options("sim:1", {{"without_ops", "DESCENT_STEP,SGD_STEP,ADAM_STEP"}}), true);
  (void)once;
  return Device("sim:1");
}

TEST(Optimizers, FollowThemWithoutFusedKernels) {
  const Device device = without_fused_steps();
  const uint64_t before = device.counters().decompositions;
  for (const test::Formula& formula : test::formulas())
    for (const DType dtype : {DType::f32, DType::f64}) expect_formula(formula, dtype, device);
  EXPECT_GT(device.counters().decompositions, before);
}

TEST(Optimizers, UseTheFusedKernelWhereThereIsOne) {
  const Device device = default_device();
  Tensor x = tensor_of(kStart, DType::f32).requires_grad_();
  x.set_grad(tensor_of(gradient(1), DType::f32));
  nn::SGD plain({x}, 0.1), momentum({x}, 0.1, {.momentum = 0.9});
  nn::Adam adam({x}, 0.1);
  for (nn::Optimizer* each : std::initializer_list<nn::Optimizer*>{&plain, &momentum, &adam}) {
    each->step();
    const DeviceCounters before = device.counters();
    each->step();
    EXPECT_EQ(device.counters().kernels, before.kernels + 1);
    EXPECT_EQ(device.counters().decompositions, before.decompositions);
  }
}

TEST(Optimizers, LeaveParametersWithoutAGradientAlone) {
  Tensor x = tensor_of(kStart, DType::f64).requires_grad_(), idle = tensor_of(kStart, DType::f64).requires_grad_();
  for (const test::Formula& formula : test::formulas()) {
    const auto optimizer = formula.make({idle, x});
    x.set_grad(tensor_of(gradient(2), DType::f64));
    const Numbers before = numbers_of(x);
    optimizer->step();
    EXPECT_EQ(numbers_of(idle), kStart);
    const Numbers after = numbers_of(x);
    EXPECT_NE(after, before);
    x.requires_grad_(false);
    optimizer->step();
    EXPECT_EQ(numbers_of(x), after);
    optimizer->zero_grad();
    EXPECT_FALSE(x.requires_grad_().grad().defined());
  }
}

// The reflection I - 2 v v^T / (v^T v).
Tensor reflection(const Numbers& v) {
  const Tensor column = reshape(tensor_of(v, DType::f64), {-1, 1});
  const int64_t n = column.count();
  return eye(n, n, DType::f64) - matmul(column, transpose(column)) * (2 / sum(column * column));
}

// The singular values of Muon's step are those of the mean of gradients, scaled and moved by the polynomial.
TEST(Optimizers, MuonMovesTheSingularValues) {
  const Tensor left = reflection({1, 2, -1}), right = narrow(reflection({1, 0, 2, -1, 3}), 0, 0, 3);
  const Tensor values = reshape(tensor_of({4, 2, 0.5}, DType::f64), {1, 3});
  Tensor moved = values / sqrt(sum(values * values));
  for (int i = 0; i < 2; ++i) {
    const Tensor cube = moved * moved * moved;
    moved = moved * 1.5 - cube * 0.5 + cube * moved * moved * 0.125;
  }
  for (const bool is_tall : {false, true}) {
    const auto matrix = [&](const Tensor& s) {
      const Tensor wide = matmul(left * s, right);
      return is_tall ? contiguous(transpose(wide)) : wide;
    };
    Tensor x = full(is_tall ? Shape{5, 3} : Shape{3, 5}, 2, DType::f64).requires_grad_();
    x.set_grad(matrix(values));
    nn::Muon({x}, 0.5, {.weight_decay = 0.25, .momentum = 0.75, .a = 1.5, .b = -0.5, .c = 0.125, .steps = 2}).step();
    const Tensor wanted = 2 * (1 - 0.5 * 0.25) - matrix(moved) * (0.5 * (is_tall ? std::sqrt(5.0 / 3.0) : 1));
    expect_all_near(numbers_of(reshape(x, {-1})), numbers_of(reshape(wanted, {-1})), 1e-12);
  }
}

TEST(Optimizers, AsgdAveragesFromStepT0On) {
  Tensor x = tensor_of(kStart, DType::f64).requires_grad_();
  nn::ASGD asgd({x}, 0.125, {.t0 = 2});
  Numbers mean;
  for (int step = 1; step <= 6; ++step) {
    x.set_grad(tensor_of(gradient(step), DType::f64));
    asgd.step();
    const Numbers now = numbers_of(x);
    if (step <= 4) mean = now;  // the share of a step, 1 / max(1, step - 1 - t0), is 1
    else
      for (size_t i = 0; i < mean.size(); ++i) mean[i] += (now[i] - mean[i]) / (step - 1 - 2);
    expect_all_near(numbers_of(asgd.state()[0].tensor), mean, 1e-13);
  }
}

TEST(Optimizers, RefuseWhatMakesNoSense) {
  Tensor x = tensor_of(kStart, DType::f64).requires_grad_();
  EXPECT_THROW(nn::SGD({x}, 0.1, {.nesterov = true}), Error);
  EXPECT_THROW(nn::SGD({x, Tensor()}, 0.1), Error);
  for (const double rate : {-1.0, std::nan(""), HUGE_VAL}) {
    EXPECT_THROW(nn::SGD({x}, rate), Error);
    EXPECT_THROW(nn::SGD({x}, 0.1, {.momentum = rate}), Error);
    EXPECT_THROW(nn::Adam({x}, 0.1, {.weight_decay = rate}), Error);
    EXPECT_THROW(nn::Adam({x}, 0.1, {.epsilon = rate}), Error);
    EXPECT_THROW(nn::SGD({x}, 0.1).set_rate(rate), Error);
  }
  EXPECT_THROW(nn::SGD({x * 2}, 0.1), Error);
  EXPECT_THROW(nn::SGD({x.detach()}, 0.1), Error);
  EXPECT_THROW(nn::Adam({x}, 0.1, {.beta1 = 1}), Error);
  EXPECT_THROW(nn::Adam({x}, 0.1, {.beta2 = -0.5}), Error);
  EXPECT_THROW(nn::AdamW({x}, 0.1, {.beta2 = std::nan("")}), Error);
  EXPECT_THROW(nn::SGD({x}, 0.1, {.momentum = 0.5, .nesterov = true, .dampening = 0.5}), Error);
  EXPECT_THROW(nn::Rprop({x}, 0.1, {.eta_plus = 0.5}), Error);
  EXPECT_THROW(nn::Muon({x}, 0.1), Error);
  EXPECT_THROW(nn::Muon({full({2, 2}, 1).requires_grad_()}, 0.1, {.b = std::nan("")}), Error);
}

TEST(Optimizers, GoOnFromTheirStateBitForBit) {
  for (const test::Formula& formula : test::formulas())
    for (const DType dtype : {DType::f32, DType::f64}) {
      SCOPED_TRACE(formula.name);
      Tensor whole = tensor_of(kStart, dtype).requires_grad_();
      const auto unbroken = formula.make({whole});
      Tensor broken;
      std::vector<NamedTensor> saved;
      for (int step = 1; step <= 10; ++step) {
        whole.set_grad(tensor_of(gradient(step), dtype));
        unbroken->step();
        if (step != 5) continue;
        broken = tensor_of(numbers_of(whole), dtype).requires_grad_();
        for (const NamedTensor& each : unbroken->state()) saved.push_back({each.name, clone(each.tensor)});
      }
      const auto resumed = formula.make({broken});
      resumed->load_state(saved, 5);
      for (int step = 6; step <= 10; ++step) {
        broken.set_grad(tensor_of(gradient(step), dtype));
        resumed->step();
      }
      EXPECT_EQ(numbers_of(broken), numbers_of(whole));
      EXPECT_EQ(resumed->steps(), 10);
    }
}

TEST(Optimizers, NameTheirState) {
  Tensor x = tensor_of(kStart, DType::f32).requires_grad_(), y = full({2, 2}, 1).requires_grad_();
  const auto names = [](const nn::Optimizer& optimizer) {
    std::vector<std::string> all;
    for (const NamedTensor& each : optimizer.state()) all.push_back(each.name + " " + each.tensor.shape().text());
    return all;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names(nn::SGD({x, y}, 0.1)), Names());
  EXPECT_EQ(names(nn::SGD({x, y}, 0.1, {.momentum = 0.5})), (Names{"momentum_buffer.0 (5,)", "momentum_buffer.1 (2, 2)"}));
  EXPECT_EQ(names(nn::Adam({x, y}, 0.1)), (Names{"exp_avg.0 (5,)", "exp_avg.1 (2, 2)", "exp_avg_sq.0 (5,)",
                                                 "exp_avg_sq.1 (2, 2)", "step.0 ()", "step.1 ()"}));
}

// A parameter's bias correction counts the steps of that parameter only: in its first step, from zero moments, the parameter
// moves by the rate.
TEST(Optimizers, CountTheStepsOfEachParameter) {
  Tensor early = full({2}, 0, DType::f64).requires_grad_(), late = full({2}, 0, DType::f64).requires_grad_();
  nn::Adam adam({early, late}, 0.5, {.epsilon = 0});
  for (int step = 0; step < 3; ++step) {
    early.set_grad(full({2}, 4, DType::f64));
    adam.step();
  }
  nn::Adam resumed({early, late}, 0.5, {.epsilon = 0});
  resumed.load_state(adam.state(), adam.steps());
  for (nn::Adam* each : {&adam, &resumed}) {
    {
      const NoGrad unrecorded;
      late.fill_(0);
    }
    early.clear_grad();
    late.set_grad(full({2}, -4, DType::f64));
    each->step();
    expect_all_near(numbers_of(late), {0.5, 0.5}, 1e-12);
    expect_all_near(numbers_of(early), {-1.5, -1.5}, 1e-12);
    EXPECT_EQ(each->steps(), 4);
  }
}

TEST(Optimizers, RefuseAStateThatIsNotTheirsAndChangeNothing) {
  Tensor x = tensor_of(kStart, DType::f64).requires_grad_();
  nn::Adam adam({x}, 0.1);
  x.set_grad(tensor_of(gradient(1), DType::f64));
  adam.step();
  const Numbers m = numbers_of(adam.state()[0].tensor);
  const Tensor good = full({5}, 7, DType::f64);
  const std::vector<std::vector<NamedTensor>> bad = {{},
                                                     {{"exp_avg.0", good}},
                                                     {{"exp_avg.0", good}, {"exp_avg_sq.0", full({4}, 1, DType::f64)}},
                                                     {{"exp_avg.0", good}, {"exp_avg_sq.0", full({5}, 1)}}};
  for (const auto& state : bad) {
    try {
      adam.load_state(state, 3);
      ADD_FAILURE() << "taken";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("exp_avg"), std::string::npos) << error.what();
    }
    EXPECT_EQ(numbers_of(adam.state()[0].tensor), m);
    EXPECT_EQ(adam.steps(), 1);
  }
  EXPECT_THROW(adam.load_state({{"exp_avg.0", good}, {"exp_avg_sq.0", good}}, -1), Error);
  // Step counts that would overflow in the next step.
  std::vector<NamedTensor> state = adam.state();
  EXPECT_THROW(adam.load_state(state, std::numeric_limits<int64_t>::max()), Error);
  for (const int64_t taken : {std::numeric_limits<int64_t>::max(), int64_t{-1}}) {
    state.back().tensor = full({}, taken, DType::i64);
    EXPECT_THROW(adam.load_state(state, 3), Error) << state.back().name;
    EXPECT_EQ(adam.steps(), 1);
  }
}

TEST(Steps, RefuseStatesOfAnotherShapeAndChangeNothing) {
  Tensor p = tensor_of(kStart, DType::f64), v = full({4}, 0, DType::f64), g = tensor_of(gradient(1), DType::f64);
  EXPECT_THROW(sgd_step(p, v, g, {.rate = 0.1, .momentum = 0.9}), Error);
  Tensor m = full({5}, 0, DType::f64);
  EXPECT_THROW(adam_step(p, m, v, g, {0.1, 0.9, 0.999, 1e-8, 0, false, 1}), Error);
  Tensor none;
  EXPECT_THROW(sgd_step(p, none, full({5}, 1), {.rate = 0.1}), Error);
  EXPECT_THROW(sgd_step(p, none, g, {.rate = 0.1, .momentum = -0.5}), Error);
  EXPECT_EQ(numbers_of(p), kStart);
}

}  // namespace
}  // namespace plugrad
