// Value: numbers, gradients, and inspection of the graph.
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/nn/value.hpp>
#include <plugrad/runtime/generator.hpp>
#include <plugrad/runtime/runtime.hpp>

#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <functional>
#include <sstream>

namespace plugrad {
namespace {

struct Case {
  const char* op;
  Value (*apply)(const Value& a, const Value& b);
  double value, a_grad, b_grad;  // at a = 1.5, b = -0.5
  size_t operands;
};
const Case kCases[] = {
    {"+", [](const Value& a, const Value& b) { return a + b; }, 1.0, 1, 1, 2},
    {"-", [](const Value& a, const Value& b) { return a - b; }, 2.0, 1, -1, 2},
    {"*", [](const Value& a, const Value& b) { return a * b; }, -0.75, -0.5, 1.5, 2},
    {"/", [](const Value& a, const Value& b) { return a / b; }, -3.0, -2, -6, 2},
    {"**", [](const Value& a, const Value&) { return pow(a, 3); }, 3.375, 6.75, 0, 1},
    {"ReLU", [](const Value& a, const Value&) { return relu(a); }, 1.5, 1, 0, 1},
    {"tanh", [](const Value& a, const Value&) { return tanh(a); }, std::tanh(1.5), 1 - std::tanh(1.5) * std::tanh(1.5), 0,
     1},
    {"exp", [](const Value& a, const Value&) { return exp(a); }, std::exp(1.5), std::exp(1.5), 0, 1},
    {"log", [](const Value& a, const Value&) { return log(a); }, std::log(1.5), 1 / 1.5, 0, 1},
};

TEST(Value, KnowsOpOperandsAndGradients) {
  for (const Case& each : kCases) {
    SCOPED_TRACE(each.op);
    const Value a = 1.5, b = -0.5;
    const Value y = each.apply(a, b);
    EXPECT_EQ(y.op(), each.op);
    EXPECT_NEAR(y.data(), each.value, 1e-14);
    const std::vector<Value> operands = y.previous();
    ASSERT_EQ(operands.size(), each.operands);
    EXPECT_TRUE(operands[0].is_same(a));
    if (each.operands > 1) {
      EXPECT_TRUE(operands[1].is_same(b));
    }
    y.backward();
    EXPECT_NEAR(a.grad(), each.a_grad, 1e-14);
    EXPECT_NEAR(b.grad(), each.b_grad, 1e-14);
    EXPECT_EQ(y.grad(), 1);
  }
}

TEST(Value, NegatedIsAnOpOfOneOperand) {
  const Value a = 2.0;
  const Value y = -a;
  y.backward();
  EXPECT_EQ(y.data(), -2);
  EXPECT_EQ(a.grad(), -1);
  EXPECT_FALSE(y.op().empty());
}

TEST(Value, ALeafHasNeitherOpNorOperands) {
  const Value a = 2.0;
  EXPECT_EQ(a.op(), "");
  EXPECT_TRUE(a.previous().empty());
  EXPECT_EQ(a.grad(), 0);
  EXPECT_EQ(Value().data(), 0);
}

TEST(Value, KeepsGradientsOfEveryIntermediate) {
  const Value a = 2.0, b = -3.0, c = 10.0, f = -2.0;
  const Value e = a * b, d = e + c, y = d * f;
  y.backward();
  EXPECT_EQ(y.data(), -8);
  const std::pair<const Value*, double> expected[] = {{&y, 1}, {&d, -2}, {&f, 4}, {&e, -2}, {&c, -2}, {&a, 6}, {&b, -4}};
  for (const auto& [value, gradient] : expected) EXPECT_EQ(value->grad(), gradient);
}

TEST(Value, KeepsConstantsInItsGraph) {
  const Value a = 3.0;
  const Value y = a * 2 + 1;
  const std::vector<Value> sum = y.previous();
  ASSERT_EQ(sum.size(), 2u);
  EXPECT_EQ(sum[1].data(), 1);
  const std::vector<Value> product = sum[0].previous();
  ASSERT_EQ(product.size(), 2u);
  EXPECT_EQ(product[1].data(), 2);
  y.backward();
  EXPECT_EQ(product[1].grad(), 3);
  EXPECT_EQ(sum[1].grad(), 1);
}

TEST(Value, AddsWhenBackwardIsCalledAgain) {
  const Value a = 2.0;
  const Value b = a * a, y = b * 3;
  for (int times = 1; times <= 3; ++times) {
    y.backward();
    EXPECT_EQ(a.grad(), 12.0 * times);
    EXPECT_EQ(b.grad(), 3.0 * times);
    EXPECT_EQ(y.grad(), 1.0 * times);
  }
}

TEST(Value, UsedManyTimesCollectsAllItsGradients) {
  const Value a = 3.0;
  Value y = a;
  for (int i = 0; i < 10; ++i) y = y + y;
  y.backward();
  EXPECT_EQ(y.data(), 3072);
  EXPECT_EQ(a.grad(), 1024);
  const Value b = -2.0;
  (b + b).backward();
  EXPECT_EQ(b.grad(), 2);
}

TEST(Value, IsASharedHandle) {
  Value a = 1.0;
  Value same = a;
  same.set_data(5);
  EXPECT_EQ(a.data(), 5);
  const Value y = a * a;
  a = Value(7.0);
  y.backward();
  EXPECT_EQ(same.grad(), 10);
  EXPECT_EQ(a.grad(), 0);
}

TEST(Value, TakesANewGradient) {
  Value a = 1.0;
  a.set_grad(4);
  EXPECT_EQ(a.grad(), 4);
  (a * 2).backward();
  EXPECT_EQ(a.grad(), 6);
}

TEST(Value, ChangedAfterItWasUsedIsAnErrorOfBackward) {
  Value a = 2.0;
  const Value y = a * a;
  a.set_data(3);
  EXPECT_THROW(y.backward(), Error);
  EXPECT_EQ(a.grad(), 0);
}

TEST(Value, HasALabel) {
  Value a = 2.0;
  EXPECT_EQ(a.label(), "");
  a.set_label("a");
  EXPECT_EQ(a.label(), "a");
  Value y = a * 3;
  y.set_label("y").set_label("result");
  EXPECT_EQ(y.label(), "result");
  EXPECT_EQ(y.previous()[0].label(), "a");
}

TEST(Value, PrintsDataAndGradient) {
  const Value a = 3.0;
  std::ostringstream before, after;
  before << a;
  EXPECT_EQ(before.str(), "Value(data=3, grad=0)");
  (a * 2).backward();
  after << a;
  EXPECT_EQ(after.str(), "Value(data=3, grad=2)");
}

TEST(Value, WithoutRecordingHasNoPlaceInAGraph) {
  const Value a = 3.0;
  const NoGrad unrecorded;
  const Value y = a * 2;
  EXPECT_EQ(y.data(), 6);
  EXPECT_THROW(y.previous(), Error);
  EXPECT_THROW(y.backward(), Error);
}

TEST(Value, TakesNumbersOnWhateverDeviceItIs) {
  const std::string other = default_device().name() == "reference:0" ? "cpu" : "reference";
  if (!has_device(other)) GTEST_SKIP() << "no second device: " << other << " is not built";
  Value x(3.0, Device(other));
  Value y = 1 + x * 2 - 4.0;
  y = 6.0 / y + x / 2 - 1.0 + (5 - x) + 2 * x;
  y += 1;
  y -= 2;
  y *= 2;
  y /= 4;
  EXPECT_EQ(y.tensor().device().name(), other + ":0");
  EXPECT_EQ(y.data(), (6.0 / 3 + 1.5 - 1 + 2 + 6 - 1) / 2);
}

TEST(Network, SaysWhatItIs) {
  EXPECT_EQ(Neuron(3).text(), "ReLUNeuron(3)");
  EXPECT_EQ(Neuron(2, false).text(), "LinearNeuron(2)");
  EXPECT_EQ(MLP(2, {3, 1}).text(),
            "MLP of [Layer of [ReLUNeuron(2), ReLUNeuron(2), ReLUNeuron(2)], Layer of [LinearNeuron(3)]]");
}

TEST(Network, HasItsParametersInOrder) {
  const MLP model(3, {4, 4, 1});
  const std::vector<Value> all = model.parameters();
  ASSERT_EQ(all.size(), 41u);
  EXPECT_TRUE(all[0].is_same(model.layers[0].neurons[0].w[0]));
  EXPECT_TRUE(all[3].is_same(model.layers[0].neurons[0].b));
  EXPECT_TRUE(all[4].is_same(model.layers[0].neurons[1].w[0]));
  EXPECT_TRUE(all[40].is_same(model.layers[2].neurons[0].b));
  for (const Layer& layer : model.layers)
    for (const Neuron& neuron : layer.neurons) {
      EXPECT_EQ(neuron.b.data(), 0);
      for (const Value& weight : neuron.w) EXPECT_LE(std::abs(weight.data()), 1);
    }
}

TEST(Network, IsTheSameFromTheSameSeed) {
  const auto drawn = [](uint64_t seed) {
    manual_seed(seed);
    std::vector<double> numbers;
    for (const Value& each : MLP(2, {3, 1}).parameters()) numbers.push_back(each.data());
    return numbers;
  };
  EXPECT_EQ(drawn(5), drawn(5));
  EXPECT_NE(drawn(5), drawn(6));
}

TEST(Network, ComputesWhatItsNeuronsSay) {
  manual_seed(1);
  const MLP model(2, {2, 1});
  const std::vector<double> x{0.5, -1.5};
  std::vector<double> hidden;
  const auto number = [](const Neuron& n, const std::vector<double>& in) {
    double sum = n.b.data();
    for (size_t i = 0; i < in.size(); ++i) sum += n.w[i].data() * in[i];
    return n.nonlin ? std::max(sum, 0.0) : sum;
  };
  for (const Neuron& each : model.layers[0].neurons) hidden.push_back(number(each, x));
  EXPECT_NEAR(model({x[0], x[1]})[0].data(), number(model.layers[1].neurons[0], hidden), 1e-15);
  EXPECT_THROW(model({1.0}), Error);
}

// A layer computes with a matrix; its neurons, called directly, compute one value at a time.
TEST(Network, ALayerHasTheGradientsOfItsNeurons) {
  manual_seed(3);
  const Layer layer(3, 4);
  const std::vector<Value> x{0.5, -1.5, 2.0};
  std::vector<double> gradients[2];
  for (std::vector<double>& all : gradients) {
    std::vector<Value> out;
    if (&all == gradients) out = layer(x);
    else
      for (const Neuron& each : layer.neurons) out.push_back(each(x));
    Value total = 0.0;
    for (size_t i = 0; i < out.size(); ++i) total += out[i] * static_cast<double>(i + 1);
    total.backward();
    for (const std::vector<Value>& group : {layer.parameters(), x})
      for (Value each : group) {
        all.push_back(each.grad());
        Tensor(each.tensor()).clear_grad();
      }
  }
  ASSERT_EQ(gradients[0].size(), gradients[1].size());
  for (size_t i = 0; i < gradients[0].size(); ++i) EXPECT_NEAR(gradients[0][i], gradients[1][i], 1e-14);
}

TEST(Network, ItsResultsComeFromParametersAndInputs) {
  const MLP model(2, {3, 1});
  const std::vector<Value> x{1.0, 2.0};
  const Value y = model(x)[0];
  EXPECT_EQ(y.op(), "layer");
  const std::vector<Value> behind = y.previous();
  EXPECT_EQ(behind.size(), 2u + model.parameters().size());
  for (const std::vector<Value>& group : {model.parameters(), x})
    for (const Value& each : group)
      EXPECT_TRUE(std::ranges::any_of(behind, [&](const Value& v) { return v.is_same(each); }));
}

TEST(Network, SeesChangedWeightsAndGoesOnWithoutRecording) {
  Layer layer(1, 2, false);
  for (double weight : {1.0, 2.0}) {
    for (Neuron& each : layer.neurons) each.w[0].set_data(weight);
    EXPECT_EQ(layer({3.0})[1].data(), 3 * weight);
    const NoGrad unrecorded;
    EXPECT_EQ(layer({4.0})[0].data(), 4 * weight);
  }
  layer({1.0})[0].backward();
  EXPECT_EQ(layer.neurons[0].w[0].grad(), 1);
}

TEST(Network, ForgetsItsGradients) {
  MLP model(2, {2, 1});
  model({1.0, 2.0})[0].backward();
  double total = 0;
  for (const Value& each : model.parameters()) total += std::abs(each.grad());
  EXPECT_GT(total, 0);
  model.zero_grad();
  for (const Value& each : model.parameters()) EXPECT_EQ(each.grad(), 0);
}

}  // namespace
}  // namespace plugrad
