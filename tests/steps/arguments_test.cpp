// Arguments and results of compiled steps.
#include <tests/steps/twins.hpp>

namespace plugrad::test {
namespace {

TEST(Compile, RecordsAnewForOtherArguments) {
  int calls = 0;
  auto step = compile([&](const Tensor& x) { return ++calls, x * x; });
  const Tensor whole = counting({4, 4});
  for (int round = 0; round < 3; ++round)
    for (const Tensor& x : {counting({3}), counting({4}), counting({4}, DType::f32), transpose(whole), whole})
      EXPECT_TRUE(same_bytes({step(x)}, {x * x}));
  EXPECT_EQ(calls, 5);
  const NoGrad unrecorded;
  step(whole);
  EXPECT_EQ(calls, 6);
}

TEST(Compile, TakesPartsOfOneTensor) {
  const Tensor data = counting({12, 32});
  int calls = 0;
  auto step = compile([&](const Tensor& x) { return ++calls, sum(slice(x, 0, 1, 3) * 2 + select(x, 0, 0)); });
  for (int64_t i = 0; i < 4; ++i) {
    const Tensor x = slice(data, 0, i * 3, i * 3 + 3);
    EXPECT_TRUE(same_bytes({step(x)}, {sum(slice(x, 0, 1, 3) * 2 + select(x, 0, 0))}));
  }
  EXPECT_EQ(calls, 1);
}

TEST(Compile, TellsCapturedTensorsFromArguments) {
  const Tensor w = f32({10, 20});
  auto step = compile([&](const Tensor& x) { return x + w; });
  EXPECT_TRUE(same_bytes({step(w)}, {f32({20, 40})}));
  EXPECT_TRUE(same_bytes({step(f32({1, 2}))}, {f32({11, 22})}));
}

TEST(Compile, TellsArgumentsThatShareMemory) {
  auto step = compile([](const Tensor& x, const Tensor& y) {
    Tensor z = x;
    z.mul_(2);
    return y + 1;
  });
  for (int i = 0; i < 2; ++i) {
    const Tensor x = f32({1, 2}), y = f32({5, 6});
    EXPECT_TRUE(same_bytes({step(x, x), x}, {f32({3, 5}), f32({2, 4})}));
    EXPECT_TRUE(same_bytes({step(x, y), x}, {f32({6, 7}), f32({4, 8})}));
  }
}

TEST(Compile, WritesArgumentsInPlace) {
  auto step = compile([](const Tensor& x) {
    Tensor whole = x;
    whole.add_(ones({2}));
    return whole * 10;
  });
  for (int i = 0; i < 3; ++i) {
    Tensor x = f32({1, 2}), w = ones({2}).requires_grad_();
    const Tensor saved = sum(w * x);
    EXPECT_TRUE(same_bytes({step(x), x}, {f32({20, 30}), f32({2, 3})}));
    EXPECT_TRUE(throws(Code::invalid, {"changed"}, [&] { saved.backward(); })) << i;
  }
}

TEST(Compile, GivesGradientsToArguments) {
  auto step = compile([](const Tensor& x) { sum(x * x).backward(); });
  const Tensor a = f32({1, 2}).requires_grad_(), b = f32({3, 4}).requires_grad_();
  for (int i = 1; i < 5; ++i) {
    step(a);
    step(b);
    EXPECT_TRUE(close(elements(a.grad()), {2.0 * i, 4.0 * i}, 0));
    EXPECT_TRUE(close(elements(b.grad()), {6.0 * i, 8.0 * i}, 0));
  }
}

TEST(Compile, RefusesArgumentsThatItCannotTake) {
  auto step = compile([](const Tensor& x) { return x + 1; }, {.name = "plus"});
  const Tensor leaf = ones({2}).requires_grad_();
  EXPECT_TRUE(throws(Code::invalid, {"argument 0 of 'plus'", "undefined"}, [&] { step(Tensor()); }));
  EXPECT_TRUE(throws(Code::invalid, {"argument 0 of 'plus'", "graph", "detach()"}, [&] { step(leaf * 2); }));
}

TEST(Compile, LeavesEarlierResultsAlone) {
  auto step = compile([](const Tensor& x) { return x * 10; });
  Tensors results;
  for (int i = 0; i < 6; ++i) results.push_back(step(one(i)));
  for (int i = 0; i < 6; ++i) EXPECT_EQ(results[static_cast<size_t>(i)].item<float>(), 10 * i);
}

TEST(Compile, ReturnsViewsOfWhatItIsGiven) {
  const Tensor w = f32({7, 8});
  auto step = compile([&](const Tensor& x) {
    const Tensor y = x + 1;
    return Tensors{slice(x, 0, 0, 1), w, y, slice(y, 0, 1, 2), zeros({0})};
  });
  for (int i = 0; i < 3; ++i) {
    const Tensor x = f32({1.0 * i, 5});
    Tensors got = step(x);
    EXPECT_TRUE(same_bytes(got, {one(i), w, f32({i + 1.0, 6}), f32({6}), zeros({0})}));
    got[0].fill_(99);
    EXPECT_TRUE(close(elements(x), {99, 5}, 0)) << "a view of the argument";
    got[2].fill_(3);
    EXPECT_TRUE(close(elements(got[3]), {3}, 0)) << "two results share their memory";
  }
}

TEST(Compile, GivesResultsWithoutGraph) {
  const Tensor w = ones({2}).requires_grad_();
  auto step = compile([&](const Tensor& x) { return sum(x * w); });
  for (int i = 0; i < 3; ++i) {
    const Tensor y = step(f32({1, 2}));
    EXPECT_FALSE(y.requires_grad());
    EXPECT_TRUE(throws(Code::invalid, {"no graph"}, [&] { y.backward(); }));
  }
}

TEST(Compile, ReturnsTensorsWithoutElements) {
  const Warnings warnings;
  auto step = compile([](const Tensor& x, const Tensor& y) { return Tensors{x * 2, y + 1, slice(y * 3, 0, 1, 1)}; });
  for (int i = 0; i < 4; ++i) {
    const Tensors made = step(zeros({0, 3}), f32({1.0 * i}));
    EXPECT_EQ(made[0].shape(), Shape({0, 3}));
    EXPECT_TRUE(close(elements(made[1]), {i + 1.0}, 0));
    EXPECT_EQ(made[2].shape(), Shape({0}));
  }
  EXPECT_EQ(step.figures().replayed, 3u) << step.explain();
  EXPECT_TRUE(warnings.lines.empty());
}

// Eager ops check whether an index is negative; a recording must not depend on the sign.
TEST(Compile, TakesIndicesOfAnySign) {
  const Tensor x = rand({5, 3});
  const auto f = [&](const Tensor& rows) { return Tensors{take(x, rows, 0), index(x, {rows})}; };
  auto step = compile(f);
  const std::vector<std::vector<double>> all = {{0, 4}, {1, 2}, {-1, 3}, {-5, -2}};
  for (const std::vector<double>& each : all) {
    const Tensor rows = of(DType::i64, each, {2});
    EXPECT_TRUE(same_bytes(step(rows), f(rows)));
  }
  EXPECT_EQ(step.figures().replayed, 3u) << step.explain();
}

}  // namespace
}  // namespace plugrad::test
