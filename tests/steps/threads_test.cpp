// Compiled steps on several threads, and constant memory.
#include <tests/steps/twins.hpp>

#include <atomic>
#include <thread>

namespace plugrad::test {
namespace {

TEST(Compile, NoticesOpsOfOtherThreads) {
  const Warnings warnings;
  auto step = compile([](const Tensor& x) {
    const Tensor y = x + 1;
    Tensor z;
    std::thread([&] { z = y * 2; }).join();
    return z + y;
  });
  for (int i = 0; i < 6; ++i) EXPECT_EQ(step(one(i)).item<float>(), 3 * (i + 1));
  EXPECT_EQ(step.figures().replayed, 0u);
  EXPECT_EQ(warnings.lines.size(), 1u);
}

TEST(Compile, IsCalledByManyThreads) {
  const Tensor w = f32({2});
  auto step = compile([&](const Tensor& x) { return x * w + 1; });
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const int x = t * 1000 + i;
        wrong += step(one(x)).item<float>() != static_cast<float>(2 * x + 1);
        wrong += (one(x) - 1).item<float>() != static_cast<float>(x - 1);
      }
    });
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Compile, NeedsConstantMemory) {
  Net net(5);
  nn::Adam optimizer(net.parameters, 0.01);
  auto step = compile([&](const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    Tensor loss = cross_entropy(net(x), y);
    loss.backward();
    optimizer.step();
    return loss;
  });
  const Tensor x = points(300, 1), y = labels(300);
  for (int i = 0; i < 5; ++i) step(x, y);
  const Device device = x.device();
  device.reset_peak();
  const uint64_t before = device.memory().active;
  for (int i = 0; i < 500; ++i) step(x, y);
  EXPECT_EQ(device.memory().active, before);
  EXPECT_EQ(step.figures().recorded, 2u);  // before and after the gradients existed
}

TEST(Compile, ExplainsItsRecordings) {
  auto step = compile([](const Tensor& x) { return tanh(x + ones({3})) * 2 + 1; }, {.name = "chain", .fuse = false});
  step(f32({1, 2, 3}));
  const std::string text = step.explain();
  for (const char* part :
       {"'chain': 1 calls recorded, 0 replayed", "5 calls: 4 in each replay, 0 of them in fusions, 1 that make constants"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(Compile, ShowsItsCallsToAProfiler) {
  auto step = compile([](const Tensor& x) { return tanh(x) * 2; }, {.fuse = false});
  step(f32({1}));
  Profiler profiler;
  step(f32({2}));
  profiler.stop();
  int ops = 0;
  for (const ProfileEvent& each : profiler.events()) ops += each.kind == EventKind::op;
  EXPECT_EQ(ops, 2);
  EXPECT_EQ(step.figures().replayed, 1u);
}

}  // namespace
}  // namespace plugrad::test
