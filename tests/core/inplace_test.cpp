// Writing in place: the written values, the writes that the graph forbids, and the writes that it detects.
#include <tests/core/expect.hpp>

#include <cmath>

namespace plugrad::test {
namespace {

TEST(InPlace, CopyBroadcastsAndCasts) {
  for (DType dtype : kRealDTypes) {
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

TEST(InPlace, TransformWritesWhatAFunctionReturns) {
  Tensor x = counting({2, 2});
  const Tensor row = select(x, 0, 1);
  transform(x, "neg_", [](const Tensor& old) { return neg(old); });
  EXPECT_TRUE(close(x, {2, 2}, {0, -1, -2, -3}) && close(row, {2}, {-2, -3}));
  Tensor whole = i64({1, 2});
  transform(whole, "lt_", [](const Tensor& old) { return lt(old, 2); });
  EXPECT_TRUE(close(whole, {2}, {1, 0}) && whole.dtype() == DType::i64);
  EXPECT_TRUE(throws(Code::invalid, {"[div_]", "f32", "i64"},
                     [&] { transform(whole, "div_", [](const Tensor& old) { return div(old, 2); }); }));
  EXPECT_TRUE(throws(Code::invalid, {"[f]", "(2,)", "(2, 2)"},
                     [&] { transform(x, "f", [](const Tensor& old) { return sum(old, {0}); }); }));
}

// --- With the graph.

TEST(InPlace, TransformKeepsWhatTheFunctionSaved) {
  const Tensor x = f64({0.5, -2}).requires_grad_();
  Tensor y = x * 3;
  transform(y, "mul_", [](const Tensor& old) { return mul(old, old); });
  transform(y, "exp_", [](const Tensor& old) { return exp(neg(old)); });
  sum(y).backward();
  const double first = std::exp(-2.25), second = std::exp(-36.0);
  EXPECT_TRUE(close(y, {2}, {first, second}, 1e-14));
  EXPECT_TRUE(close(x.grad(), {2}, {-9 * first, 36 * second}, 1e-14));
  Tensor z = x * 3;
  const Tensor part = select(z, 0, 0);
  EXPECT_TRUE(
      throws(Code::invalid, {"[neg_]", "share"}, [&] { transform(z, "neg_", [](const Tensor& old) { return neg(old); }); }));
  Tensor leaf = x;
  EXPECT_TRUE(throws(Code::invalid, {"[neg_]", "NoGrad"},
                     [&] { transform(leaf, "neg_", [](const Tensor& old) { return neg(old); }); }));
}

TEST(InPlace, OnALeafWhileRecordingIsAnError) {
  Tensor x = f64({1, 2}).requires_grad_();
  EXPECT_TRUE(throws(Code::invalid, {"[add_]", "NoGrad"}, [&] { x.add_(x); }));
  EXPECT_TRUE(throws(Code::invalid, {"[mul_]", "NoGrad"}, [&] { x.mul_(2); }));
  EXPECT_TRUE(throws(Code::invalid, {"[fill_]", "NoGrad"}, [&] { x.fill_(2); }));
  EXPECT_TRUE(throws(Code::invalid, {"[copy_]", "NoGrad"}, [&] { x.copy_(x * 2); }));
  EXPECT_TRUE(throws(Code::invalid, {"[assign]", "NoGrad"}, [&] { assign(x, select(x.detach(), 0, 0), 1); }));
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

// --- Recorded writes: results and gradients equal those of ops without writes.

Tensor part_of(const Tensor& x, const std::function<Tensor(const Tensor&)>& f) {
  const NoGrad unrecorded;
  return f(x);
}
Tensor first_row(const Tensor& x) {
  return part_of(x, [](const Tensor& all) { return select(all, 0, 0); });
}
Tensor every_other_column_backwards(const Tensor& x) {
  return part_of(x, [](const Tensor& all) { return slice(all, 1, 2, -4, -2); });
}

struct RecordedWrite {
  const char* name;
  void (*write)(Tensor& x, const Tensor& w);  // x (2, 3), w (3)
  Tensor (*expected)(const Tensor& x, const Tensor& w);
};
const RecordedWrite kRecordedWrites[] = {
    {"copy_", [](Tensor& x, const Tensor& w) { x.copy_(w * w); },
     [](const Tensor& x, const Tensor& w) { return x * 0 + w * w; }},
    {"copy_ of itself", [](Tensor& x, const Tensor&) { x.copy_(x); }, [](const Tensor& x, const Tensor&) { return x; }},
    {"copy_ of a constant", [](Tensor& x, const Tensor&) { x.copy_(f64({1, 2, 3})); },
     [](const Tensor& x, const Tensor&) { return x * 0 + f64({1, 2, 3}); }},
    {"copy_ of a leaf", [](Tensor& x, const Tensor& w) { x.copy_(w); },
     [](const Tensor& x, const Tensor& w) { return x * 0 + w; }},
    {"add_", [](Tensor& x, const Tensor& w) { x.add_(w, 3); }, [](const Tensor& x, const Tensor& w) { return x + w * 3; }},
    {"add_ of f32", [](Tensor& x, const Tensor& w) { x.add_(cast(w, DType::f32)); },
     [](const Tensor& x, const Tensor& w) { return x + w; }},
    {"mul_", [](Tensor& x, const Tensor&) { x.mul_(3); }, [](const Tensor& x, const Tensor&) { return x * 3; }},
    {"fill_", [](Tensor& x, const Tensor&) { x.fill_(3); }, [](const Tensor& x, const Tensor&) { return x * 0 + 3; }},
    {"several", [](Tensor& x, const Tensor& w) { x.add_(w), x.mul_(2), x.add_(w); },
     [](const Tensor& x, const Tensor& w) { return (x + w) * 2 + w; }},
    {"assign a row", [](Tensor& x, const Tensor& w) { assign(x, first_row(x), w * w); },
     [](const Tensor& x, const Tensor& w) { return cat({unsqueeze(w * w, 0), slice(x, 0, 1, 2)}, 0); }},
    {"assign a number", [](Tensor& x, const Tensor&) { assign(x, first_row(x), 5); },
     [](const Tensor& x, const Tensor&) { return cat({full({1, 3}, 5, DType::f64), slice(x, 0, 1, 2)}, 0); }},
    {"assign columns", [](Tensor& x, const Tensor& w) { assign(x, every_other_column_backwards(x), slice(w, 0, 0, 2)); },
     [](const Tensor& x, const Tensor& w) {
       const Tensor column = expand(unsqueeze(w, 0), {2, 3});
       return cat({slice(column, 1, 1, 2), slice(x, 1, 1, 2), slice(column, 1, 0, 1)}, 1);
     }},
    {"assign one after another",
     [](Tensor& x, const Tensor& w) {
       assign(x, first_row(x), w);
       assign(x, first_row(x), slice(w, 0, 2, -4, -1));
     },
     [](const Tensor& x, const Tensor& w) { return cat({unsqueeze(slice(w, 0, 2, -4, -1), 0), slice(x, 0, 1, 2)}, 0); }},
};

// The values, the first gradients and the second gradients.
std::vector<Tensor> derivatives(const Tensor& y, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> all = {y};
  const std::vector<Tensor> first = grad({sum(y * y * y)}, inputs, {.create_graph = true, .allow_unused = true});
  Tensor total = f64({0}, {});
  for (const Tensor& each : first) total = each.defined() ? total + sum(each * each) : total;
  std::vector<Tensor> second(inputs.size());
  if (total.requires_grad()) second = grad({total}, inputs, {.allow_unused = true});
  all.insert(all.end(), first.begin(), first.end());
  all.insert(all.end(), second.begin(), second.end());
  return all;
}

TEST(InPlace, RecordedWritesHaveGradients) {
  for (const RecordedWrite& each : kRecordedWrites) {
    SCOPED_TRACE(each.name);
    const Tensor v = counting({2, 3}).requires_grad_(), w = f64({2, -1, 3}).requires_grad_();
    Tensor x = v * 2;
    each.write(x, w);
    const std::vector<Tensor> actual = derivatives(x, {v, w}), expected = derivatives(each.expected(v * 2, w), {v, w});
    for (size_t i = 0; i < expected.size(); ++i) {
      const std::vector<double> zeros(static_cast<size_t>(i % 2 ? v.count() : w.count()));
      const std::vector<double> wanted = expected[i].defined() ? elements(expected[i]) : zeros;
      EXPECT_TRUE(close(actual[i].defined() ? elements(actual[i]) : zeros, wanted, 1e-12)) << i;
    }
  }
}

TEST(InPlace, AWriteIntoATensorOutsideTheGraphBringsItIn) {
  for (const RecordedWrite& each : kRecordedWrites) {
    SCOPED_TRACE(each.name);
    const Tensor w = f64({2, -1, 3}).requires_grad_(), start = counting({2, 3});
    Tensor x = counting({2, 3});
    each.write(x, w);
    const Tensor expected = each.expected(start, w);
    EXPECT_TRUE(close(x, {2, 3}, elements(expected)));
    EXPECT_EQ(x.requires_grad(), expected.requires_grad());
    if (!expected.requires_grad()) continue;
    EXPECT_TRUE(close(grad({sum(x * x)}, {w})[0], {3}, elements(grad({sum(expected * expected)}, {w})[0]), 1e-12));
  }
}

TEST(InPlace, ALoopThatFillsATensorRowByRow) {
  const Tensor w = f64({2, -1, 3}).requires_grad_();
  Tensor rows = zeros({4, 3}, DType::f64);
  for (int64_t i = 0; i < 4; ++i)
    assign(rows, part_of(rows, [i](const Tensor& all) { return select(all, 0, i); }), w * static_cast<double>(i));
  sum(rows * counting({4, 3})).backward();
  EXPECT_TRUE(close(w.grad(), {3}, {3 + 12 + 27, 4 + 14 + 30, 5 + 16 + 33}));
}

TEST(InPlace, ARecordedWriteIsRefusedWhereOthersShareTheMemory) {
  const Tensor w = f64({1, 2}).requires_grad_();
  Tensor base = zeros({2, 2}, DType::f64), row = select(base, 0, 0), result = w * 2;
  const Tensor detached = result.detach();
  const auto is_refused = [](const char* what, const std::function<void()>& write) {
    return throws(Code::invalid, {what, "share the memory", "clone"}, write);
  };
  EXPECT_TRUE(is_refused("[copy_]", [&] { row.copy_(w); }));
  EXPECT_TRUE(is_refused("[add_]", [&] { base.add_(w); }));
  EXPECT_TRUE(is_refused("[mul_]", [&] { result.mul_(2); }));
  EXPECT_TRUE(is_refused("[fill_]", [&] { result.fill_(2); }));
  EXPECT_TRUE(is_refused("[assign]", [&] { assign(base, first_row(base), w); }));
  EXPECT_TRUE(close(base, {2, 2}, {0, 0, 0, 0}));
  EXPECT_TRUE(close(result, {2}, {2, 4}));
  row.fill_(5);  // no tensor here is in a graph
  EXPECT_TRUE(close(base, {2, 2}, {5, 5, 0, 0}));
}

TEST(InPlace, PartsThatCannotBeAssigned) {
  const Tensor w = f64({1, 2}).requires_grad_();
  Tensor x = zeros({2, 2}, DType::f64);
  EXPECT_TRUE(throws(Code::invalid, {"[assign]", "no view"}, [&] { assign(x, zeros({2}), 1); }));
  Tensor turned = transpose(zeros({2, 3}, DType::f64));
  EXPECT_TRUE(throws(Code::invalid, {"[assign]", "(3, 2)", "contiguous"}, [&] { assign(turned, first_row(turned), w); }));
  assign(turned, first_row(turned), 4);
  EXPECT_TRUE(close(turned, {3, 2}, {4, 4, 0, 0, 0, 0}));
  EXPECT_TRUE(throws(Code::invalid, {"(3,)", "(2,)"}, [&] { assign(x, first_row(x), f64({1, 2, 3})); }));
}

TEST(InPlace, AGradientOfAValueBeforeTheWriteIsAnError) {
  const Tensor w = f64({1, 2}).requires_grad_();
  Tensor x = f64({3, 4});
  const Tensor loss = sum(w * x);
  x.add_(w);
  EXPECT_TRUE(throws(Code::invalid, {"changed in place"}, [&] { loss.backward(); }));
}

TEST(InPlace, IntegersAndUnrecordedWritesStayOutsideTheGraph) {
  const Tensor w = f64({1.5, 2.5}).requires_grad_();
  Tensor whole = i64({0, 0}), x = f64({0, 0});
  whole.copy_(w);
  EXPECT_FALSE(whole.requires_grad());
  EXPECT_TRUE(close(whole, {2}, {1, 2}));
  const NoGrad unrecorded;
  x.copy_(w);
  assign(x, slice(x, 0, 0, 1), slice(w, 0, 1, 2) * 2);
  EXPECT_FALSE(x.requires_grad());
}

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
