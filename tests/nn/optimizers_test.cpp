// Compares optimisers with loops in double precision that follow PyTorch's formulas.
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/nn/optimizer.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/update.hpp>
#include <plugrad/runtime/generator.hpp>
#include <plugrad/runtime/runtime.hpp>
#include <tests/paths.hpp>

#include <gtest/gtest.h>
#include <cmath>
#include <functional>
#include <limits>

namespace plugrad {
namespace {

using nn::NamedTensor;
using Numbers = std::vector<double>;
constexpr int kSteps = 25;

Numbers numbers_of(const Tensor& x) { return cast(x, DType::f64).to_vector<double>(); }
Tensor tensor_of(const Numbers& values, DType dtype, Device device = default_device()) {
  if (dtype == DType::f64) return Tensor::from(values, {static_cast<int64_t>(values.size())}, device);
  return Tensor::from(std::vector<float>(values.begin(), values.end()), {static_cast<int64_t>(values.size())}, device);
}
const Numbers kStart{0.5, -1.25, 3.0, 0.0, -0.001};
// A gradient that changes with the step, and is exact in f32 and f64.
Numbers gradient(int step) {
  Numbers g;
  for (size_t i = 0; i < kStart.size(); ++i)
    g.push_back(static_cast<double>((step * 7 + static_cast<int>(i) * 5) % 11 - 5) / 8);
  return g;
}

void expect_all_near(const Numbers& found, const Numbers& wanted, double tolerance) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_NEAR(found[i], wanted[i], tolerance * std::max(1.0, std::abs(wanted[i]))) << i;
}

struct Golden {
  const char* name;
  std::function<std::unique_ptr<nn::Optimizer>(std::vector<Tensor>)> make;
  std::function<void(Numbers& p, Numbers& a, Numbers& b, const Numbers& g, int step)> step;  // a, b: the optimiser's state
};

std::function<void(Numbers&, Numbers&, Numbers&, const Numbers&, int)> sgd_loop(double rate, double momentum, double decay,
                                                                                bool nesterov) {
  return [=](Numbers& p, Numbers& velocity, Numbers&, const Numbers& grad, int step) {
    for (size_t i = 0; i < p.size(); ++i) {
      double g = grad[i] + decay * p[i];
      if (momentum != 0) {
        velocity[i] = step == 1 ? g : momentum * velocity[i] + g;
        g = nesterov ? g + momentum * velocity[i] : velocity[i];
      }
      p[i] -= rate * g;
    }
  };
}

std::function<void(Numbers&, Numbers&, Numbers&, const Numbers&, int)> adam_loop(double rate, nn::AdamOptions o,
                                                                                 bool decoupled) {
  return [=](Numbers& p, Numbers& m, Numbers& v, const Numbers& grad, int step) {
    for (size_t i = 0; i < p.size(); ++i) {
      if (decoupled) p[i] *= 1 - rate * o.weight_decay;
      const double g = decoupled ? grad[i] : grad[i] + o.weight_decay * p[i];
      m[i] = o.beta1 * m[i] + (1 - o.beta1) * g;
      v[i] = o.beta2 * v[i] + (1 - o.beta2) * g * g;
      const double corrected = std::sqrt(v[i]) / std::sqrt(1 - std::pow(o.beta2, step)) + o.epsilon;
      p[i] -= rate / (1 - std::pow(o.beta1, step)) * m[i] / corrected;
    }
  };
}

Golden sgd(const char* name, double rate, nn::SGDOptions o) {
  return {name, [=](std::vector<Tensor> p) { return std::make_unique<nn::SGD>(std::move(p), rate, o); },
          sgd_loop(rate, o.momentum, o.weight_decay, o.nesterov)};
}
template <class Kind> Golden adam(const char* name, double rate, nn::AdamOptions o) {
  return {name, [=](std::vector<Tensor> p) { return std::make_unique<Kind>(std::move(p), rate, o); },
          adam_loop(rate, o, std::is_same_v<Kind, nn::AdamW>)};
}

Golden rmsprop(const char* name, double rate, nn::RMSpropOptions o) {
  return {
      name, [=](std::vector<Tensor> p) { return std::make_unique<nn::RMSprop>(std::move(p), rate, o); },
      [=, mean = Numbers(kStart.size())](Numbers& p, Numbers& v, Numbers& velocity, const Numbers& grad, int step) mutable {
        if (step == 1) mean.assign(kStart.size(), 0);
        for (size_t i = 0; i < p.size(); ++i) {
          const double g = grad[i] + o.weight_decay * p[i];
          v[i] = o.alpha * v[i] + (1 - o.alpha) * g * g;
          mean[i] = o.alpha * mean[i] + (1 - o.alpha) * g;
          const double variance = o.centered ? v[i] - mean[i] * mean[i] : v[i];
          velocity[i] = o.momentum * velocity[i] + g / (std::sqrt(variance) + o.epsilon);
          p[i] -= rate * velocity[i];
        }
      }};
}

Golden lion(const char* name, double rate, nn::LionOptions o) {
  return {name, [=](std::vector<Tensor> p) { return std::make_unique<nn::Lion>(std::move(p), rate, o); },
          [=](Numbers& p, Numbers& m, Numbers&, const Numbers& grad, int) {
            for (size_t i = 0; i < p.size(); ++i) {
              const double u = o.beta1 * m[i] + (1 - o.beta1) * grad[i];
              p[i] -= rate * (static_cast<double>(u > 0) - static_cast<double>(u < 0) + o.weight_decay * p[i]);
              m[i] = o.beta2 * m[i] + (1 - o.beta2) * grad[i];
            }
          }};
}

std::vector<Golden> goldens() {
  return {sgd("plain", 0.1, {}),
          sgd("decay", 0.1, {.weight_decay = 0.25}),
          sgd("momentum", 0.05, {.momentum = 0.9}),
          sgd("momentum and decay", 0.05, {.momentum = 0.9, .weight_decay = 0.125}),
          sgd("nesterov", 0.05, {.momentum = 0.75, .nesterov = true}),
          sgd("nesterov and decay", 0.05, {.momentum = 0.75, .weight_decay = 0.5, .nesterov = true}),
          adam<nn::Adam>("adam", 0.01, {}),
          adam<nn::Adam>("adam with decay", 0.01, {.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3, .weight_decay = 0.5}),
          adam<nn::AdamW>("adamw", 0.01, {.weight_decay = 0.01}),
          adam<nn::AdamW>("adamw with much decay", 0.1, {.beta1 = 0.5, .beta2 = 0.9, .epsilon = 1e-4, .weight_decay = 0.75}),
          rmsprop("rmsprop", 0.01, {.epsilon = 1e-3}),
          rmsprop("rmsprop, centered", 0.01, {.alpha = 0.75, .epsilon = 0.125, .weight_decay = 0.25, .centered = true}),
          rmsprop("rmsprop with momentum", 0.01, {.alpha = 0.9, .epsilon = 1e-2, .momentum = 0.5}),
          lion("lion", 0.0625, {}),
          lion("lion with decay", 0.0625, {.beta1 = 0.75, .beta2 = 0.5, .weight_decay = 0.5})};
}

void expect_golden(const Golden& golden, DType dtype, Device device) {
  SCOPED_TRACE(std::string(golden.name) + " in " + dtype_name(dtype) + " on " + device.name());
  Tensor x = tensor_of(kStart, dtype, device).requires_grad_();
  Numbers p = kStart, a(p.size()), b(p.size());
  const auto optimizer = golden.make({x});
  for (int step = 1; step <= kSteps; ++step) {
    x.set_grad(tensor_of(gradient(step), dtype, device));
    optimizer->step();
    golden.step(p, a, b, gradient(step), step);
    expect_all_near(numbers_of(x), p, dtype == DType::f64 ? 1e-13 : 4e-6);
    EXPECT_EQ(optimizer->steps(), step);
    expect_all_near(numbers_of(x.grad()), gradient(step), 0);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Optimizers, FollowTheFormulasOfPyTorch) {
  for (const Golden& golden : goldens())
    for (const DType dtype : {DType::f32, DType::f64}) expect_golden(golden, dtype, default_device());
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
  for (const Golden& golden : goldens())
    for (const DType dtype : {DType::f32, DType::f64}) expect_golden(golden, dtype, device);
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
  for (const Golden& golden : goldens()) {
    const auto optimizer = golden.make({idle, x});
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
}

TEST(Optimizers, GoOnFromTheirStateBitForBit) {
  for (const Golden& golden : goldens())
    for (const DType dtype : {DType::f32, DType::f64}) {
      SCOPED_TRACE(golden.name);
      Tensor whole = tensor_of(kStart, dtype).requires_grad_();
      const auto unbroken = golden.make({whole});
      Tensor broken;
      std::vector<NamedTensor> saved;
      for (int step = 1; step <= 10; ++step) {
        whole.set_grad(tensor_of(gradient(step), dtype));
        unbroken->step();
        if (step != 5) continue;
        broken = tensor_of(numbers_of(whole), dtype).requires_grad_();
        for (const NamedTensor& each : unbroken->state()) saved.push_back({each.name, clone(each.tensor)});
      }
      const auto resumed = golden.make({broken});
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
