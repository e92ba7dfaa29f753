// Compiled steps on several threads, and constant memory.
#include <plugrad/autograd/memory.hpp>
#include <plugrad/runtime/cancel.hpp>
#include <tests/steps/twins.hpp>

#include <atomic>
#include <chrono>
#include <memory>
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

// Calls f(thread, i) `count` times in each of four threads.
template <class F> void in_threads(int count, const F& f) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&f, t, count] {
      for (int i = 0; i < count; ++i) f(t, i);
    });
  for (std::thread& each : threads) each.join();
}

TEST(Compile, ForwardPassesRunSideBySide) {
  const Tensor w = f32({2});
  auto step = compile([&](const Tensor& x) { return x * w + 1; });
  step(one(0));
  std::atomic<int> wrong{0};
  in_threads(300, [&](int t, int i) {
    if (i % 100 == 50 && t == 0) step.clear();
    const int x = t * 1000 + i;
    wrong += step(one(x)).item<float>() != static_cast<float>(2 * x + 1);
    wrong += step(f32({1, static_cast<float>(i)})).to_vector<float>()[1] != static_cast<float>(2 * i + 1);
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(step.figures().recorded + step.figures().replayed + step.figures().called, 1 + 2 * 1200u);
}

// A call meets a busy step for certain while the step records another kind of call, whose function waits here.
TEST(Compile, AForwardPassDoesNotWaitForAnother) {
  const Tensor x = full({100, 100}, 0.01);
  std::atomic<bool> is_inside{false}, may_leave{false};
  auto step = compile([&](const Tensor& y) {
    if (y.shape()[0] != 100)
      for (is_inside = true; !may_leave;) std::this_thread::yield();
    return sum(matmul(matmul(matmul(y, y), y), y));
  });
  const float expected = step(x).item<float>();
  const auto is_side_by_side = [&] { return step.explain().find("side by side") != std::string::npos; };
  std::atomic<int> wrong{0};
  for (int64_t n = 1; n < 50 && !is_side_by_side(); ++n) {  // the second thread may be late
    is_inside = may_leave = false;
    std::thread recording([&] { step(full({n, n}, 1)); });
    while (!is_inside) std::this_thread::yield();
    std::thread waiting([&] { wrong += step(x).item<float>() != expected; });
    std::this_thread::sleep_for(std::chrono::milliseconds(n));
    may_leave = true;
    recording.join();
    waiting.join();
  }
  EXPECT_TRUE(is_side_by_side()) << step.explain();
  in_threads(20, [&](int, int) { wrong += step(x).item<float>() != expected; });
  EXPECT_EQ(wrong, 0);
}

TEST(Compile, StepsThatWriteRunOneAtATime) {
  Tensor w = f32({1});
  auto train = compile([&](const Tensor& x) {
    w.add_(x);
    return w + 0;
  });
  in_threads(200, [&](int, int) { train(one(1)); });
  EXPECT_EQ(w.item<float>(), 801);
}

TEST(Compile, ConstantsOfAProgramAreKept) {
  auto step = compile([](const Tensor& x) {
    const float numbers[] = {1, 2};
    Tensor sum = constant_from_host(numbers, 2, DType::f32, {2}, x.device());
    sum.add_(x);  // each replay begins with the numbers
    return sum;
  });
  for (int i = 0; i < 4; ++i) EXPECT_EQ(step(one(i)).to_vector<float>(), (std::vector<float>{1.0f + i, 2.0f + i}));
  EXPECT_EQ(step.figures().replayed, 3u);
}

TEST(Compile, ExplainsWhyItRecordsAnew) {
  auto step = compile([](const Tensor& x) { return x + 1; });
  step(full({2, 3}, 1));
  step(full({4, 3}, 1));
  step(full({4, 3}, 1, DType::f64));
  step(transpose(full({3, 4}, 1, DType::f64), 0, 1));
  step(transpose(full({3, 4}, 1, DType::f64), 0, 1).requires_grad_());
  for (const char* each : {"argument 0 has the shape (4, 3), was (2, 3)", "argument 0 has the dtype f64, was f32",
                           "argument 0 has the strides (1, 4), was (3, 1)"})
    EXPECT_NE(step.explain().find(each), std::string::npos) << step.explain();
  EXPECT_NE(step.explain().find("requires a gradient"), std::string::npos) << step.explain();
}

template <class F> void expect_cancelled(const F& f) {
  try {
    f();
    ADD_FAILURE() << "the call was not cancelled";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::cancelled) << error.what();
  }
}

TEST(Compile, IsCancelledBeforeItBegins) {
  auto step = compile([](const Tensor& x) { return x + 1; });
  for (int i = 0; i < 3; ++i) step(one(i));
  std::stop_source outer, inner;
  const CancelScope around(outer.get_token());
  {
    const CancelScope scope(inner.get_token());
    EXPECT_EQ(step(one(1)).item<float>(), 2);
    inner.request_stop();
    expect_cancelled([&] { step(one(1)); });
  }
  EXPECT_EQ(step(one(2)).item<float>(), 3);
  const CancelScope scope(std::stop_source().get_token());
  outer.request_stop();
  expect_cancelled([&] { step(one(1)); });
  expect_cancelled([] { throw_if_cancelled(); });
}

TEST(Compile, IsCancelledByScopesAroundOnesThatEndedElsewhere) {
  std::stop_source sources[3];
  const CancelScope outer(sources[0].get_token());
  auto middle = std::make_unique<CancelScope>(sources[1].get_token());
  const CancelScope inner(sources[2].get_token());
  std::thread([&] { middle.reset(); }).join();
  sources[1].request_stop();
  throw_if_cancelled();
  sources[0].request_stop();
  expect_cancelled([] { throw_if_cancelled(); });
}

constexpr uint64_t kOps = 1000;

Tensor noisy_products(const Tensor& x) {
  Tensor y = x;
  for (uint64_t i = 0; i < kOps; ++i) y = matmul(y, x) + rand(x.shape());
  return y;
}

template <class F> bool is_cancelled(const F& f) {
  std::stop_source source;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    source.request_stop();
  });
  bool cancelled = false;
  try {
    const CancelScope scope(source.get_token());
    f();
  } catch (const Error& error) {
    cancelled = error.code() == Code::cancelled;
  }
  other.join();
  return cancelled;
}

// The random numbers of a cancelled replay say how far it came. Devices with streams accept the whole step at once.
TEST(Compile, IsCancelledBetweenTwoOps) {
  const Device device = default_device();
  if (device.name().starts_with("sim") || device.name().starts_with("cuda")) GTEST_SKIP() << "the step is one list there";
  auto step = compile(noisy_products);
  const Tensor x = full({64, 64}, 1e-3);
  step(x);
  step(x);
  ASSERT_EQ(step.figures().replayed, 1u);
  bool cancelled = false;
  for (int i = 0; i < 20 && !cancelled; ++i) {  // the other thread may be late
    const uint64_t before = generator_state(device).offset;
    cancelled = is_cancelled([&] { step(x); });
    const uint64_t drawn = generator_state(device).offset - before, whole = x.count() / 4;
    EXPECT_EQ(drawn % whole, 0u);
    EXPECT_EQ(drawn < kOps * whole, cancelled);
  }
  EXPECT_TRUE(cancelled);
  const GeneratorState state = generator_state(device);
  const Tensor replayed = step(x);
  set_generator_state(device, state);
  EXPECT_TRUE(same_bytes({replayed}, {noisy_products(x)}));
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

// While record_memory is on, the function itself runs; afterwards replays go on, also where no op is recorded for gradients.
TEST(Compile, ReplaysAgainAfterARecordOfMemory) {
  const NoGrad unrecorded;
  auto step = compile([](const Tensor& x) { return tanh(x) * 2; });
  step(f32({1}));
  record_memory();
  step(f32({2}));
  EXPECT_EQ(step.figures().replayed, 0u);
  record_memory(false);
  step(f32({3}));
  EXPECT_EQ(step.figures().replayed, 1u);
  EXPECT_EQ(step.figures().recorded, 1u);
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
