// PLUGRAD_CAPTURE=check: every 16th replay is compared with the function.
#include <tests/steps/twins.hpp>

#include <cstdlib>

namespace plugrad::test {
namespace {

struct Checking : ::testing::Test {
  static void SetUpTestSuite() { setenv("PLUGRAD_CAPTURE", "check", 1); }
};

TEST_F(Checking, FindsNoDifferenceInATrainingStep) {
  const auto run = [](bool compiled) {
    Net net(1);
    nn::AdamW optimizer(net.parameters, 0.01);
    Twin step(compiled, [&](const Tensor& x) {
      optimizer.zero_grad();
      Tensor loss = mean(dropout(net(x), 0.5, true));
      loss.backward();
      optimizer.step();
      return loss;
    });
    Tensors all;
    for (uint64_t i = 0; i < 60; ++i) all.push_back(step(points(6, i)).detach());
    EXPECT_EQ(optimizer.steps(), 60);
    all.insert(all.end(), net.parameters.begin(), net.parameters.end());
    return all;
  };
  EXPECT_TRUE(same_bytes(run(true), run(false)));
}

// The calls of the step have other layouts than the function's calls.
TEST_F(Checking, FindsNoDifferenceInImages) {
  const NoGrad unrecorded;
  manual_seed(2);
  const Tensor first = rand({16, 8, 3, 3}), second = rand({16, 16, 3, 3}), scale = rand({16, 1, 1});
  Twin step(true, [&](const Tensor& x) {
    const Tensor y = relu(conv2d(x, first, {}, {1}, {1}));
    return mean(conv2d(max_pool2d(y * scale + y, {2}), second), {2, 3});
  });
  for (int i = 0; i < 40; ++i) step(rand({2, 8, 10, 12}));
  EXPECT_GE(step.step().figures().called, 2);
}

TEST_F(Checking, NamesTheCallThatDiffers) {
  double scale = 2;
  bool more = false;
  const auto f = [&](const Tensor& x) {
    const Tensor y = tanh(x) * scale;
    return more ? exp(y) : y + 1;
  };
  const Tensor x = ones({3});
  const auto run = [&](auto& step) {
    for (int i = 0; i < 40; ++i) step(x);
  };
  auto first = compile(f, {.name = "first"});
  run(first);
  scale = 3;
  EXPECT_TRUE(throws(Code::internal, {"'first'", "call 1 is mul of (3,) f32", "results differ"}, [&] { run(first); }));
  auto second = compile(f);
  run(second);
  more = true;
  EXPECT_TRUE(throws(Code::internal, {"call 2 is add of (3,) f32", "and exp of (3,) f32"}, [&] { run(second); }));
}

TEST_F(Checking, TakesBackWhatARehearsalChanged) {
  const Tensor a = rand({32, 32}), b = rand({32, 32});
  auto step = compile(
      [&] {
        const NoGrad unrecorded;
        Tensor t = matmul(a, b);
        t.add_(b);
        return relu(t) * 2;
      },
      {.fusion_elements = 1});
  const Tensor expected = relu(matmul(a, b) + b) * 2;
  for (int i = 0; i < 40; ++i) EXPECT_TRUE(same_bytes({step()}, {expected}));
}

// A step changes a tensor whose memory several gradients use later.
TEST_F(Checking, TakesBackWhatARehearsalChangedInARoom) {
  const Tensor a = rand({128, 64}), b = rand({64, 64}), c = rand({128, 64});
  Tensors weights;
  for (int i = 0; i < 4; ++i) weights.push_back(rand({64, 64}).requires_grad_());
  const auto f = [&] {
    for (Tensor each : weights) each.clear_grad();
    Tensor t = matmul(a, b);
    t.add_(c);
    Tensor x = relu(t) * 2;
    t = Tensor();
    for (const Tensor& each : weights) x = matmul(x, each) * 0.01;
    sum(x).backward();
  };
  const auto gradients = [&] {
    Tensors all;
    for (const Tensor& each : weights) all.push_back(each.grad());
    return all;
  };
  f();
  const Tensors expected = gradients();
  auto step = compile(f, {.fusion_elements = 1});
  for (int i = 0; i < 40; ++i) {
    step();
    EXPECT_TRUE(same_bytes(gradients(), expected)) << i;
  }
}

TEST_F(Checking, WritesOnce) {
  Tensor count = zeros({1});
  auto step = compile([&] {
    const NoGrad unrecorded;
    count.add_(ones({1}));
  });
  for (int i = 0; i < 50; ++i) step();
  EXPECT_EQ(count.item<float>(), 50);
}

}  // namespace
}  // namespace plugrad::test
