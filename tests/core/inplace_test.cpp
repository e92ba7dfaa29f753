// Writing in place: the values written, what the graph forbids, and what it detects.
#include <tests/core/expect.hpp>

namespace plugrad::test {
namespace {

TEST(InPlace, CopyBroadcastsAndCasts) {
  for (DType dtype : kEveryDType) {
    Tensor x = zeros({2, 3}, dtype);
    x.copy_(f64({1, 0, 1}));
    EXPECT_TRUE(close(x, {2, 3}, {1, 0, 1, 1, 0, 1})) << dtype;
    x.copy_(of(DType::boolean, {0, 1}, {2, 1}));
    EXPECT_TRUE(close(x, {2, 3}, {0, 0, 0, 1, 1, 1})) << dtype;
    x.copy_(to(ones({}, DType::i64), other_device()));
    EXPECT_TRUE(close(x, {2, 3}, {1, 1, 1, 1, 1, 1})) << dtype;
    EXPECT_EQ(x.dtype(), dtype);
  }
}

TEST(InPlace, WritesThroughViews) {
  Tensor x = counting({3, 4});
  Tensor column = slice(x, 1, 3, -5, -2), row = select(x, 0, 1), turned = transpose(x);
  column.fill_(9);
  EXPECT_TRUE(close(x, {3, 4}, {0, 9, 2, 9, 4, 9, 6, 9, 8, 9, 10, 9}));
  row.mul_(10);
  turned.add_(ones({4, 3}, DType::f64), -1);
  EXPECT_TRUE(close(x, {3, 4}, {-1, 8, 1, 8, 39, 89, 59, 89, 7, 8, 9, 8}));
  column.copy_(f64({1, 2}));
  EXPECT_TRUE(close(x, {3, 4}, {-1, 2, 1, 1, 39, 2, 59, 1, 7, 2, 9, 1}));
}

TEST(InPlace, ASourceThatOverlapsIsReadFirst) {
  Tensor x = counting({5});
  slice(x, 0, 1, 5).copy_(slice(x, 0, 0, 4));
  EXPECT_TRUE(close(x, {5}, {0, 0, 1, 2, 3}));
  x.add_(slice(x, 0, 4, -6, -1));
  EXPECT_TRUE(close(x, {5}, {3, 2, 2, 2, 3}));
  x.add_(x, 2);
  EXPECT_TRUE(close(x, {5}, {9, 6, 6, 6, 9}));
  x.copy_(x);
  EXPECT_TRUE(close(x, {5}, {9, 6, 6, 6, 9}));
  Tensor square = counting({2, 2});
  square.copy_(transpose(square));
  EXPECT_TRUE(close(square, {2, 2}, {0, 2, 1, 3}));
}

TEST(InPlace, AddScalesAndBroadcasts) {
  for (DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64}) {
    Tensor x = counting({2, 2}, dtype);
    x.add_(of(dtype, {1, 2}, {2}), 3);
    EXPECT_TRUE(close(x, {2, 2}, {3, 7, 5, 9})) << dtype;
    x.mul_(2);
    EXPECT_TRUE(close(x, {2, 2}, {6, 14, 10, 18})) << dtype;
  }
  Tensor none = zeros({0, 2});
  none.fill_(1);
  none.add_(none);
  none.copy_(zeros({2}));
  EXPECT_TRUE(close(none, {0, 2}, {}));
}

TEST(InPlace, ErrorsNameWhatWasWrong) {
  Tensor x = counting({2, 3});
  EXPECT_TRUE(throws(Code::invalid, {"(3, 3)", "(2, 3)"}, [&] { x.copy_(counting({3, 3})); }));
  EXPECT_TRUE(throws(Code::invalid, {"f64", "i64"}, [] { i64({1, 2}).add_(f64({1, 2})); }));
  EXPECT_TRUE(
      throws(Code::invalid, {default_device().name(), other_device().name()}, [&] { x.add_(to(x, other_device())); }));
  EXPECT_TRUE(throws(Code::invalid, {"0.5", "i64"}, [] { i64({1, 2}).mul_(0.5); }));
  EXPECT_TRUE(throws(Code::invalid, {"2", "bool"}, [] { zeros({2}, DType::boolean).fill_(2); }));
  EXPECT_TRUE(throws(Code::invalid, {"[mul_]", "expanded", "clone"}, [] { expand(ones({1}), {3}).mul_(2); }));
  EXPECT_TRUE(throws(Code::invalid, {"[copy_]", "undefined"}, [&] { x.copy_(Tensor()); }));
  Tensor none;
  EXPECT_TRUE(throws(Code::invalid, {"[fill_]", "undefined"}, [&] { none.fill_(1); }));
  EXPECT_TRUE(close(x, {2, 3}, {0, 1, 2, 3, 4, 5}));
}

// --- With the graph.

TEST(InPlace, OnALeafWhileRecordingIsAnError) {
  Tensor x = f64({1, 2}).requires_grad_();
  EXPECT_TRUE(throws(Code::invalid, {"[add_]", "NoGrad"}, [&] { x.add_(x); }));
  EXPECT_TRUE(throws(Code::invalid, {"[mul_]", "NoGrad"}, [&] { x.mul_(2); }));
  EXPECT_TRUE(throws(Code::invalid, {"[fill_]", "NoGrad"}, [&] { x.fill_(2); }));
  EXPECT_TRUE(throws(Code::invalid, {"[copy_]", "NoGrad"}, [&] { (x * 2).copy_(x); }));
  EXPECT_TRUE(close(x, {2}, {1, 2}));
  const NoGrad unrecorded;
  x.add_(f64({1, 1}), 0.5);
  EXPECT_TRUE(close(x, {2}, {1.5, 2.5}));
  EXPECT_TRUE(x.requires_grad() && x.is_leaf());
}

struct Writer {
  const char* name;
  void (*write)(Tensor& x);
};
const Writer kWriters[] = {
    {"fill_", [](Tensor& x) { x.fill_(3); }},
    {"mul_", [](Tensor& x) { x.mul_(3); }},
    {"add_", [](Tensor& x) { x.add_(ones_like(x)); }},
    {"copy_", [](Tensor& x) { x.copy_(ones_like(x)); }},
    {"through a detached handle", [](Tensor& x) { x.detach().mul_(2); }},
    {"through a view", [](Tensor& x) { slice(x, 0, 0, 1).fill_(0); }},
};

TEST(InPlace, AChangedSavedInputIsNoticed) {
  for (const Writer& each : kWriters) {
    Tensor w = f64({1, 2}).requires_grad_(), x = f64({3, 4});
    const Tensor loss = sum(w * x);
    {
      const NoGrad unrecorded;
      each.write(x);
    }
    EXPECT_TRUE(throws(Code::invalid, {"*", "changed in place", "clone"}, [&] { loss.backward(); })) << each.name;
    EXPECT_FALSE(w.grad().defined()) << each.name;
  }
}

TEST(InPlace, AChangedSavedOutputIsNoticed) {
  Tensor w = f64({1, 2}).requires_grad_();
  Tensor y = exp(w);
  const Tensor loss = sum(y);
  {
    const NoGrad unrecorded;
    y.mul_(2);
  }
  EXPECT_TRUE(throws(Code::invalid, {"exp", "changed in place"}, [&] { loss.backward(); }));
}

TEST(InPlace, WhatNoGradientNeedsMayChange) {
  Tensor w = f64({1, 2}).requires_grad_(), x = f64({3, 4}), y = w + x;
  const Tensor loss = sum(y * 2);
  {
    const NoGrad unrecorded;
    x.fill_(0);
    y.fill_(0);
    w.fill_(0);
  }
  loss.backward();
  EXPECT_TRUE(close(w.grad(), {2}, {2, 2}));
}

TEST(InPlace, AnOptimisersStepBetweenPassesIsNotAChange) {
  Tensor w = f64({1, 2}).requires_grad_();
  for (int step = 0; step < 3; ++step) {
    sum(w * w).backward();
    const NoGrad unrecorded;
    w.add_(w.grad(), -0.25);
    w.clear_grad();
  }
  EXPECT_TRUE(close(w, {2}, {0.125, 0.25}));
}

TEST(InPlace, AWriteThatFailedChangedNothing) {
  Tensor w = f64({1, 2}).requires_grad_(), x = f64({3, 4});
  const Tensor loss = sum(w * x);
  EXPECT_TRUE(thrown([&] { x.add_(counting({3}, DType::f32)); }).any);
  EXPECT_TRUE(thrown([&] { x.copy_(counting({3})); }).any);
  EXPECT_TRUE(thrown([&] { x.copy_(Tensor()); }).any);
  EXPECT_TRUE(thrown([&] { (void)x.detach().add_(counting({3})); }).any);
  loss.backward();
  EXPECT_TRUE(close(w.grad(), {2}, {3, 4}));
}

}  // namespace
}  // namespace plugrad::test
