// The numbers of micrograd's README and notebook, to the digit. PLUGRAD_MOONS_STEPS sets the number of steps with Values.
#include <tests/demo/moons.hpp>

#include <plugrad/autograd/autograd.hpp>
#include <plugrad/nn/optimizers.hpp>
#include <plugrad/nn/value.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/views.hpp>

#include <gtest/gtest.h>
#include <cmath>
#include <cstdlib>

namespace plugrad::test {
namespace {

void expect_close(double value, double wanted) { EXPECT_NEAR(value, wanted, 1e-14 * std::abs(wanted)); }

TEST(Micrograd, TheExpressionOfItsReadme) {
  const Value a = -4.0, b = 2.0;
  Value c = a + b;
  Value d = a * b + pow(b, 3);
  c += c + 1;
  c += 1 + c + (-a);
  d += d * 2 + relu(b + a);
  d += 3 * d + relu(b - a);
  const Value e = c - d;
  const Value f = pow(e, 2);
  Value g = f / 2.0;
  g += 10.0 / f;
  expect_close(g.data(), 24.70408163265306);
  g.backward();
  expect_close(a.grad(), 138.83381924198252);
  expect_close(b.grad(), 645.5772594752186);
  EXPECT_EQ(g.grad(), 1);
  expect_close(e.grad(), 2 * e.data() * f.grad());
  expect_close(f.grad(), 0.5 - 10.0 / (f.data() * f.data()));
  EXPECT_EQ(c.data(), -1);
  EXPECT_EQ(d.data(), 6);
}

TEST(Micrograd, ItsSanityCheck) {
  const Value x = -4.0;
  const Value z = 2 * x + 2 + x;
  const Value q = relu(z) + z * x;
  const Value h = relu(z * z);
  const Value y = h + q + q * x;
  y.backward();
  EXPECT_EQ(y.data(), -20);
  EXPECT_EQ(x.grad(), 46);
}

TEST(Micrograd, ItsSeededNeuron) {
  Neuron neuron(2);
  neuron.w[0].set_data(moons().parameters[0]);
  neuron.w[1].set_data(moons().parameters[1]);
  const std::vector<Value> x{1.0, -2.0};
  const Value y = neuron(x);
  EXPECT_NEAR(y.data(), 0.102443419482938, 1e-15);
  y.backward();
  EXPECT_EQ(neuron.w[0].grad(), 1);
  EXPECT_EQ(neuron.w[1].grad(), -2);
  EXPECT_EQ(neuron.b.grad(), 1);
  EXPECT_EQ(x[0].grad(), 0.23550571390294128);
  EXPECT_EQ(x[1].grad(), 0.06653114721000164);
}

size_t value_steps() {
  const char* text = std::getenv("PLUGRAD_MOONS_STEPS");
  if (text) return static_cast<size_t>(std::atoi(text));
  const std::string device = default_device().name();
  return device.starts_with("sim") || device.starts_with("cuda-emu") ? 3 : 20;  // 70,000 ops a step go through a queue there
}

MLP started() {
  MLP model(2, {16, 16, 1});
  std::vector<Value> parameters = model.parameters();
  EXPECT_EQ(parameters.size(), moons().parameters.size());
  for (size_t i = 0; i < parameters.size(); ++i) parameters[i].set_data(moons().parameters[i]);
  return model;
}

// Returns the loss of the whole batch, and the share of correctly classified points.
std::pair<Value, double> loss_of(const MLP& model) {
  Value loss = 0.0;
  int right = 0;
  for (size_t i = 0; i < static_cast<size_t>(moons().count()); ++i) {
    const double label = moons().labels[i];
    const Value score = model({moons().points[2 * i], moons().points[2 * i + 1]})[0];
    loss += relu(1 - label * score);
    right += (label > 0) == (score.data() > 0);
  }
  Value decay = 0.0;
  for (const Value& each : model.parameters()) decay += each * each;
  return {loss / static_cast<double>(moons().count()) + decay * kMoonsDecay,
          static_cast<double>(right) / static_cast<double>(moons().count())};
}

TEST(Moons, WithValuesHaveTheLossesOfTheOriginal) {
  MLP model = started();
  for (size_t step = 0; step < value_steps(); ++step) {
    const auto [loss, accuracy] = loss_of(model);
    expect_moons_step(step, loss.data(), accuracy);
    model.zero_grad();
    loss.backward();
    for (Value& each : model.parameters()) each.set_data(each.data() - moons_rate(step) * each.grad());
  }
}

// --- The same with tensors.

struct Net {
  std::vector<Tensor> weights, biases;  // (out, in), (out)

  Net() {
    const double* next = moons().parameters.data();
    for (size_t layer = 0; layer < 3; ++layer) {
      const int64_t in = kMoonsLayers[layer], out = kMoonsLayers[layer + 1];
      std::vector<double> w, b;
      for (int64_t neuron = 0; neuron < out; ++neuron) {
        w.insert(w.end(), next, next + in);
        b.push_back(next[in]);
        next += in + 1;
      }
      weights.push_back(Tensor::from(w, {out, in}).requires_grad_());
      biases.push_back(Tensor::from(b, {out}).requires_grad_());
    }
  }
  Tensor operator()(Tensor x) const {
    for (size_t layer = 0; layer < 3; ++layer) {
      x = matmul(x, transpose(weights[layer])) + biases[layer];
      if (layer < 2) x = relu(x);
    }
    return x;
  }
  std::vector<Tensor> parameters() const {
    std::vector<Tensor> all = weights;
    all.insert(all.end(), biases.begin(), biases.end());
    return all;
  }
};

// Returns the loss, a tensor of one element, and the accuracy.
std::pair<Tensor, double> loss_of(const Net& net, const Tensor& points, const Tensor& labels) {
  const Tensor scores = net(points);
  Tensor loss = mean(relu(1 - labels * scores));
  for (const Tensor& each : net.parameters()) loss = loss + kMoonsDecay * sum(each * each);
  const Tensor right = eq(gt(scores, 0), gt(labels, 0));
  return {loss, static_cast<double>(sum(right).item<int64_t>()) / static_cast<double>(moons().count())};
}

TEST(Moons, WithTensorsHaveTheLossesOfTheOriginal) {
  const Net net;
  const Tensor points = Tensor::from(moons().points, {moons().count(), 2}),
               labels = Tensor::from(moons().labels, {moons().count(), 1});
  nn::SGD optimizer(net.parameters(), 1.0);
  for (size_t step = 0; step < moons().steps.size(); ++step) {
    const auto [loss, accuracy] = loss_of(net, points, labels);
    expect_moons_step(step, loss.item<double>(), accuracy);
    optimizer.zero_grad();
    loss.backward();
    optimizer.set_rate(moons_rate(step));
    optimizer.step();
  }
}

TEST(Moons, StepsByHandAreStepsOfTheOptimizer) {
  const Net net;
  const Tensor points = Tensor::from(moons().points, {moons().count(), 2}),
               labels = Tensor::from(moons().labels, {moons().count(), 1});
  for (size_t step = 0; step < 20; ++step) {
    const auto [loss, accuracy] = loss_of(net, points, labels);
    expect_moons_step(step, loss.item<double>(), accuracy);
    const std::vector<Tensor> gradients = grad({loss}, net.parameters());
    const NoGrad unrecorded;
    std::vector<Tensor> parameters = net.parameters();
    for (size_t i = 0; i < parameters.size(); ++i) parameters[i].add_(gradients[i], -moons_rate(step));
  }
}

}  // namespace
}  // namespace plugrad::test
