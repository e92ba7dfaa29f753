// Backward passes on several threads.
#include <tests/core/expect.hpp>

#include <atomic>
#include <thread>

namespace plugrad::test {
namespace {

template <class F> void on_threads(int count, F f) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&f, i] { f(i); });
  for (std::thread& each : threads) each.join();
}

TEST(AutogradThreads, PassesThatShareLeavesLoseNothing) {
  constexpr int kThreads = 4, kSteps = 200;
  const Tensor x = f64({1, 2}).requires_grad_(), w = f64({3, 4}).requires_grad_();
  on_threads(kThreads, [&](int thread) {
    for (int i = 0; i < kSteps; ++i) sum(x * static_cast<double>(thread + 1) + w).backward();
  });
  EXPECT_TRUE(close(x.grad(), {2}, {2000, 2000}));
  EXPECT_TRUE(close(w.grad(), {2}, {800, 800}));
}

// A leaf's first gradient is stored, not added: two threads may both find no gradient. Large leaves in the same pass, whose
// gradients are copied, increase the time between the read and the store.
TEST(AutogradThreads, TheFirstGradientsOfALeafMeet) {
  const Tensor large = zeros({200000});
  for (int round = 0; round < 40; ++round) {
    const Tensor x = f64({1, 2}).requires_grad_();
    std::atomic<int> ready{0};
    on_threads(2, [&](int) {
      const Tensor first = large.detach().requires_grad_(), last = large.detach().requires_grad_();
      const Tensor loss = cast(sum(first), DType::f64) + sum(x * 3) + cast(sum(last), DType::f64);
      ++ready;
      while (ready < 2) std::this_thread::yield();
      loss.backward();
    });
    ASSERT_TRUE(close(x.grad(), {2}, {6, 6})) << "round " << round;
  }
}

TEST(AutogradThreads, ModesBelongToAThread) {
  const Tensor x = f64({1}).requires_grad_();
  const NoGrad unrecorded;
  bool recorded = false;
  std::thread([&] { recorded = grad_enabled() && (x * 2).requires_grad(); }).join();
  EXPECT_TRUE(recorded);
  EXPECT_FALSE((x * 2).requires_grad());
}

TEST(AutogradThreads, AGraphMadeOnOneThreadIsWalkedAndFreedOnAnother) {
  const Tensor x = f64({1, 2}).requires_grad_();
  Tensor loss;
  std::thread([&] { loss = sum(exp(x * x)); }).join();
  std::thread([&] {
    loss.backward();
    loss = {};
  }).join();
  EXPECT_TRUE(close(x.grad() - exp(pow(x.detach(), 2)) * x.detach() * 2, {2}, {0, 0}, 1e-12));
}

TEST(AutogradThreads, GradsOfOneLeafAtOnce) {
  const Tensor x = f64({1, 2}).requires_grad_();
  std::atomic<int> wrong{0};
  on_threads(4, [&](int thread) {
    for (int i = 0; i < 100; ++i)
      if (!close(grad({sum(x * x * static_cast<double>(thread))}, {x})[0], {2}, {2.0 * thread, 4.0 * thread})) ++wrong;
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_FALSE(x.grad().defined());
}

// Two passes over the same recorded part: each completes or throws with a reason, and only completed passes add gradients.
TEST(AutogradThreads, PassesThatMeetInTheGraphAreRefusedOrRunOneAfterTheOther) {
  const Tensor x = f64({1, 2}).requires_grad_();
  Tensor y = x;
  for (int i = 0; i < 200; ++i) y = y + 0.0;
  const Tensor loss = sum(y);
  std::atomic<int> through{0}, odd{0};
  on_threads(3, [&](int) {
    for (int i = 0; i < 20; ++i) {
      const Thrown t = thrown([&] { loss.backward({}, {.retain_graph = true}); });
      if (!t.any) ++through;
      else if (t.message.find("another backward pass") == std::string::npos) ++odd;
    }
  });
  EXPECT_EQ(odd, 0);
  EXPECT_GT(through, 0);
  EXPECT_TRUE(close(x.grad(), {2}, {static_cast<double>(through), static_cast<double>(through)}));
  loss.backward();
  EXPECT_TRUE(close(x.grad(), {2}, {through + 1.0, through + 1.0}));
}

}  // namespace
}  // namespace plugrad::test
