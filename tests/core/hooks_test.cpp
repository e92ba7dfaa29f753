// User functions that run in a backward pass.
#include <tests/core/expect.hpp>

#include <atomic>
#include <functional>
#include <thread>

namespace plugrad::test {
namespace {

Tensor leaf(const std::vector<double>& values) { return f64(values).requires_grad_(); }
auto times(double factor) {
  return [factor](const Tensor& grad) { return grad * factor; };
}

TEST(Hooks, OfALeafSeesWhatOnePassAdds) {
  const Tensor x = leaf({1, 2});
  std::vector<std::vector<double>> seen;
  x.register_hook([&](const Tensor& grad) {
    seen.push_back(elements(grad));
    return Tensor();
  });
  for (int pass = 0; pass < 2; ++pass) sum(x * x + x).backward();
  EXPECT_EQ(seen, (std::vector<std::vector<double>>{{3, 5}, {3, 5}}));
  EXPECT_TRUE(close(x.grad(), {2}, {6, 10}));
}

TEST(Hooks, ReplaceTheGradientInTheOrderOfRegistration) {
  const Tensor x = leaf({1, 2});
  Tensor y = x * x;
  y.retain_grad();
  y.register_hook(times(10));
  y.register_hook([](const Tensor& grad) { return grad + 1; });
  x.register_hook(times(-1));
  const Tensor loss = sum(y);
  EXPECT_TRUE(close(grad({loss}, {y}, {.retain_graph = true})[0], {2}, {11, 11}));
  EXPECT_TRUE(close(grad({loss}, {x}, {.retain_graph = true})[0], {2}, {-22, -44}));
  loss.backward();
  EXPECT_TRUE(close(y.grad(), {2}, {11, 11}));
  EXPECT_TRUE(close(x.grad(), {2}, {-22, -44}));
}

TEST(Hooks, AGradientThatAHookKeepsDoesNotChange) {
  const Tensor x = leaf({1, 2});
  Tensor kept;
  x.register_hook([&](const Tensor& grad) { return kept = grad; });
  sum(x).backward();
  const NoGrad unrecorded;
  x.grad().mul_(5);
  EXPECT_TRUE(close(kept, {2}, {1, 1}));
}

TEST(Hooks, ARemovedHookIsNotCalled) {
  const Tensor x = leaf({1});
  int calls = 0;
  const auto count = [&](const Tensor&) { return ++calls, Tensor(); };
  HookHandle first = x.register_hook(count), second = x.register_hook(count);
  first.remove();
  first.remove();
  x.backward();
  EXPECT_EQ(calls, 1);
  HookHandle of_dead;
  {
    const Tensor y = x * 2;
    of_dead = y.register_hook(count);
  }
  of_dead.remove();
  HookHandle().remove();
}

TEST(Hooks, AHookMayRemoveItself) {
  const Tensor x = leaf({1});
  HookHandle handle;
  int calls = 0;
  handle = x.register_hook([&](const Tensor& grad) {
    ++calls;
    handle.remove();
    return grad * 3;
  });
  for (int pass = 0; pass < 2; ++pass) x.backward();
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(close(x.grad(), {1}, {4}));
}

TEST(Hooks, ARootIsAResultAsWell) {
  const Tensor x = leaf({3}), y = x * x;
  y.register_hook(times(2));
  y.backward();
  EXPECT_TRUE(close(x.grad(), {1}, {12}));
}

TEST(Hooks, AFrozenLeafKeepsItsHooks) {
  Tensor x = leaf({1});
  const Tensor y = x * 2;
  x.requires_grad_(false);
  x.register_hook(times(5));
  y.backward();
  EXPECT_TRUE(close(x.grad(), {1}, {10}));
}

TEST(Hooks, AreRecordedWithTheGraphOfTheGradient) {
  const Tensor x = leaf({2}), w = leaf({3});
  x.register_hook([&](const Tensor& grad) { return grad * w; });
  const Tensor first = grad({x * x}, {x}, {.create_graph = true})[0];  // 2 x w
  EXPECT_TRUE(close(first, {1}, {12}));
  EXPECT_TRUE(close(grad({first}, {w})[0], {1}, {4}));
}

TEST(Hooks, OneThatThrowsChangesNoGradient) {
  const Tensor x = leaf({1}), w = leaf({2});
  sum(x).backward();
  const auto fail = [](const Tensor&) -> Tensor { throw std::runtime_error("enough"); };
  for (bool on_leaf : {false, true}) {
    const Tensor y = x * w;
    HookHandle handle = on_leaf ? x.register_hook(fail) : y.register_hook(fail);
    EXPECT_EQ(thrown([&] { (y + w).backward(); }).message, "enough");
    handle.remove();
    EXPECT_TRUE(close(x.grad(), {1}, {1}));
    EXPECT_FALSE(w.grad().defined());
  }
  (x * w).backward();  // a failed pass leaves no leaf claimed
  EXPECT_TRUE(close(w.grad(), {1}, {1}));
}

TEST(Hooks, ErrorsSayWhatWasWrong) {
  const Tensor x = leaf({1, 2}), plain = f64({1});
  EXPECT_TRUE(throws(Code::invalid, {"[register_hook]", "requires_grad_"}, [&] { plain.register_hook(times(1)); }));
  const std::function<Tensor(const Tensor&)> none;
  EXPECT_TRUE(throws(Code::invalid, {"[register_hook]", "no function"}, [&] { x.register_hook(none); }));
  EXPECT_TRUE(throws(Code::invalid, {"[register_post_accumulate_grad_hook]", "*", "register_hook"},
                     [&] { (x * x).register_post_accumulate_grad_hook([](Tensor&) {}); }));
  x.register_hook([](const Tensor&) { return zeros({3}); });
  EXPECT_TRUE(throws(Code::invalid, {"[register_hook]", "(3,)", "f32", "(2,)", "f64"}, [&] { sum(x).backward(); }));
  EXPECT_FALSE(x.grad().defined());
}

// --- After the gradients are stored.

TEST(Hooks, APostAccumulateHookSeesAllGradients) {
  Tensor x = leaf({1, 2}), w = leaf({3, 4});
  int calls = 0;
  x.register_post_accumulate_grad_hook([&](Tensor& leaf) {
    ++calls;
    EXPECT_TRUE(close(leaf.grad(), {2}, {3, 4}));
    EXPECT_TRUE(close(w.grad(), {2}, {1, 2}));
    EXPECT_FALSE(grad_enabled());
    leaf.add_(leaf.grad(), -1);
    leaf.clear_grad();
  });
  const Tensor loss = sum(x * w);
  EXPECT_TRUE(close(grad({loss}, {x}, {.retain_graph = true})[0], {2}, {3, 4}));
  EXPECT_EQ(calls, 0);
  loss.backward();
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(close(x, {2}, {-2, -2}));
  EXPECT_FALSE(x.grad().defined());
}

TEST(Hooks, APostAccumulateHookFollowsALeafThatMoves) {
  Tensor x = leaf({1});
  x.register_post_accumulate_grad_hook([](Tensor& leaf) { leaf.add_(leaf.grad()); });
  x.move_to_(other_device());
  (x * 2).backward();
  EXPECT_TRUE(close(x, {1}, {3}));
}

TEST(Hooks, APostAccumulateHookThatThrowsLeavesTheGradientsStored) {
  const Tensor x = leaf({1});
  HookHandle handle = x.register_post_accumulate_grad_hook([](Tensor&) { throw std::runtime_error("enough"); });
  EXPECT_EQ(thrown([&] { x.backward(); }).message, "enough");
  EXPECT_TRUE(close(x.grad(), {1}, {1}));
  handle.remove();
  x.backward();
  EXPECT_TRUE(close(x.grad(), {1}, {2}));
}

TEST(Hooks, PassesOnSeveralThreadsCallThem) {
  constexpr int kThreads = 4, kSteps = 50;
  const Tensor x = leaf({1});
  std::atomic<int> calls{0};
  x.register_hook([&](const Tensor& grad) { return ++calls, grad * 2; });
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      for (int step = 0; step < kSteps; ++step) {
        HookHandle own = x.register_hook([](const Tensor&) { return Tensor(); });
        (x * 3).backward();
        own.remove();
      }
    });
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(calls, kThreads * kSteps);
  EXPECT_TRUE(close(x.grad(), {1}, {6.0 * kThreads * kSteps}));
}

}  // namespace
}  // namespace plugrad::test
