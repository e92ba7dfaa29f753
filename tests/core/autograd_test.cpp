// The graph: accumulation, roots, seeds, modes, when memory is freed, and errors that change nothing.
#include <tests/core/expect.hpp>

namespace plugrad::test {
namespace {

Tensor leaf(const std::vector<double>& values) { return f64(values).requires_grad_(); }

TEST(Autograd, GradientsAccumulate) {
  Tensor x = leaf({1, 2});
  sum(x * x).backward();
  EXPECT_TRUE(close(x.grad(), {2}, {2, 4}));
  sum(x * 3).backward();
  EXPECT_TRUE(close(x.grad(), {2}, {5, 7}));
  x.clear_grad();
  EXPECT_FALSE(x.grad().defined());
  x.set_grad(f64({10, 20}));
  sum(x).backward();
  EXPECT_TRUE(close(x.grad(), {2}, {11, 21}));
}

TEST(Autograd, AGradientIsNobodyElses) {
  const Tensor a = leaf({1, 2}), b = leaf({3, 4}), seed = f64({1, 1});
  for (bool create_graph : {false, true}) {
    Tensor(a).clear_grad(), Tensor(b).clear_grad();
    (a + b).backward(seed, {.create_graph = create_graph});
    const NoGrad unrecorded;
    a.grad().mul_(5);
    EXPECT_TRUE(close(b.grad(), {2}, {1, 1})) << create_graph;
    EXPECT_TRUE(close(seed, {2}, {1, 1})) << create_graph;
  }
}

TEST(Autograd, GradientsOfBroadcastLeavesAreDense) {
  Tensor x = leaf({1, 2});
  sum(expand(x, {3, 2})).backward();
  sum(x).backward();
  EXPECT_TRUE(x.grad().is_contiguous());
  const NoGrad unrecorded;
  x.grad().mul_(2);
  EXPECT_TRUE(close(x.grad(), {2}, {8, 8}));
}

TEST(Autograd, RootsThatAreNotScalarsWantASeed) {
  const Tensor x = leaf({1, 2, 3});
  const Tensor y = x * x;
  EXPECT_TRUE(throws(Code::invalid, {"[backward]", "(3,)", "seed"}, [&] { y.backward(); }));
  EXPECT_TRUE(throws(Code::invalid, {"[backward]", "(2,)", "(3,)"}, [&] { y.backward(f64({1, 1})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[backward]", "f32", "f64"}, [&] { y.backward(ones({3})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[backward]", "2 seeds", "1 outputs"}, [&] { backward({y}, {x, x}); }));
  y.backward(f64({1, 0, -1}));
  EXPECT_TRUE(close(x.grad(), {3}, {2, 0, -6}));
}

TEST(Autograd, RootsOfOneElementOfAnyRank) {
  const Tensor x = f64({3}, {1, 1}).requires_grad_();
  (x * x).backward();
  EXPECT_TRUE(close(x.grad(), {1, 1}, {6}));
  x.backward();  // a leaf is a root as well
  EXPECT_TRUE(close(x.grad(), {1, 1}, {7}));
}

TEST(Autograd, ASecondBackwardWantsTheGraphRetained) {
  const Tensor x = leaf({1, 2}), y = sum(exp(x));
  y.backward({}, {.retain_graph = true});
  y.backward();
  EXPECT_TRUE(throws(Code::invalid, {"freed", "retain_graph"}, [&] { y.backward(); }));
  EXPECT_TRUE(throws(Code::invalid, {"freed", "retain_graph"}, [&] { grad({y}, {x}); }));
  EXPECT_TRUE(close(x.grad() - exp(x.detach()) * 2, {2}, {0, 0}, 1e-14));
}

TEST(Autograd, AGraphThatSavedNothingMayBeWalkedAgain) {
  const Tensor x = leaf({1, 2}), y = sum(x * 3 + x);
  for (int pass = 0; pass < 2; ++pass) y.backward();
  EXPECT_TRUE(close(x.grad(), {2}, {8, 8}));
}

TEST(Autograd, APartThatWasFreedIsNoticedBehindWhatWasNot) {
  const Tensor x = leaf({1, 2}), shared = x * x;
  sum(shared).backward();
  const Tensor other = sum(shared * 2);
  EXPECT_TRUE(throws(Code::invalid, {"freed", "*"}, [&] { other.backward(); }));
  EXPECT_TRUE(close(x.grad(), {2}, {2, 4}));
}

TEST(Autograd, NothingIsRecordedWithoutNeed) {
  const Tensor x = leaf({1, 2});
  EXPECT_TRUE((x * 2).requires_grad());
  EXPECT_FALSE((f64({1}) * 2).requires_grad());
  EXPECT_FALSE(eq(x, 1).requires_grad() || argmax(x).requires_grad());
  {
    const NoGrad unrecorded;
    EXPECT_FALSE(grad_enabled());
    EXPECT_FALSE((x * 2).requires_grad());
    {
      const EnableGrad again;
      EXPECT_TRUE(grad_enabled() && (x * 2).requires_grad());
    }
    EXPECT_FALSE(grad_enabled());
  }
  EXPECT_TRUE(grad_enabled());
  const Tensor alone = x.detach();
  EXPECT_FALSE(alone.requires_grad());
  EXPECT_TRUE(throws(Code::invalid, {"[backward]", "requires_grad_"}, [&] { sum(alone * 2).backward(); }));
  EXPECT_TRUE(throws(Code::invalid, {"[grad]", "requires_grad_"}, [&] { grad({sum(x)}, {alone}); }));
}

TEST(Autograd, DetachStopsTheGradient) {
  const Tensor x = leaf({2, 3});
  sum((x * x).detach() * x).backward();
  EXPECT_TRUE(close(x.grad(), {2}, {4, 9}));
}

TEST(Autograd, WhoMayRequireAGradient) {
  EXPECT_TRUE(throws(Code::invalid, {"[requires_grad_]", "i64"}, [] { i64({1}).requires_grad_(); }));
  EXPECT_TRUE(throws(Code::invalid, {"[requires_grad_]", "bool"}, [] { zeros({1}, DType::boolean).requires_grad_(); }));
  EXPECT_TRUE(throws(Code::invalid, {"[requires_grad_]", "exp", "detach"}, [] { exp(leaf({1})).requires_grad_(false); }));
  EXPECT_TRUE(throws(Code::invalid, {"[requires_grad_]", "undefined"}, [] { Tensor().requires_grad_(); }));
  Tensor x = leaf({1});
  EXPECT_TRUE(x.is_leaf() && x.requires_grad());
  EXPECT_FALSE(x.requires_grad_(false).requires_grad());
  EXPECT_TRUE(throws(Code::invalid, {"[set_grad]", "(2,)", "(1,)"}, [] { leaf({1}).set_grad(f64({1, 2})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[retain_grad]"}, [] { f64({1}).retain_grad(); }));
  Tensor y = x.requires_grad_() * 2;
  EXPECT_TRUE(y.requires_grad_().is_same(y) && !y.is_leaf());
}

TEST(Autograd, AFrozenLeafKeepsItsGradientAndItsPlaceInGraphs) {
  Tensor x = leaf({1, 2});
  const Tensor y = sum(x * x);
  x.requires_grad_(false);
  EXPECT_FALSE((x * x).requires_grad());
  x.requires_grad_();
  y.backward();
  EXPECT_TRUE(close(x.grad(), {2}, {2, 4}));
  x.requires_grad_(false);
  EXPECT_TRUE(close(x.grad(), {2}, {2, 4}));
  x.set_grad(f64({5, 6}));
  EXPECT_TRUE(close(x.requires_grad_().grad(), {2}, {5, 6}));
  x.requires_grad_(false).clear_grad();
  EXPECT_FALSE(x.grad().defined());
}

TEST(Autograd, WhatIsAParameter) {
  Tensor x = leaf({1}), plain = f64({1}), unasked = f64({1});
  track_unasked(unasked);
  EXPECT_TRUE(unasked.requires_grad() && !is_parameter(unasked) && !is_parameter(plain) && !is_parameter(x * x));
  EXPECT_TRUE(is_parameter(x) && is_parameter(x.requires_grad_(false)) && is_parameter(unasked.requires_grad_()));
}

TEST(Autograd, RetainedGradientsOfResults) {
  const Tensor x = leaf({1, 2});
  Tensor y = x * x, z = y * 3;
  y.retain_grad();
  sum(z).backward();
  EXPECT_TRUE(close(y.grad(), {2}, {3, 3}));
  EXPECT_FALSE(z.grad().defined());
  EXPECT_EQ(std::string(y.op_name()), "*");
  EXPECT_EQ(std::string(x.op_name()), "");
}

// --- grad()

TEST(Autograd, GradTouchesNoGradient) {
  const Tensor x = leaf({1, 2});
  Tensor y = x * x;
  y.retain_grad();
  const Tensor z = sum(y * y);
  const auto gradients = grad({z}, {x, y, z});
  EXPECT_TRUE(close(gradients[0], {2}, {4, 32}));
  EXPECT_TRUE(close(gradients[1], {2}, {2, 8}));
  EXPECT_TRUE(close(gradients[2], {}, {1}));
  EXPECT_FALSE(x.grad().defined());
  EXPECT_FALSE(y.grad().defined());
}

TEST(Autograd, GradOfUnusedInputs) {
  const Tensor x = leaf({1, 2}), unused = leaf({5}), cut = x * 7;
  EXPECT_TRUE(throws(Code::invalid, {"[grad]", "(1,)", "allow_unused"}, [&] { grad({sum(x * x)}, {x, unused}); }));
  const auto gradients = grad({sum(x * x)}, {unused, x, cut}, {.allow_unused = true});
  EXPECT_FALSE(gradients[0].defined() || gradients[2].defined());
  EXPECT_TRUE(close(gradients[1], {2}, {2, 4}));
}

TEST(Autograd, SeveralOutputsSeedsAndRepetitions) {
  const Tensor x = leaf({1, 2}), y = x * x;
  const auto gradients = grad({y, sum(y), y}, {x, x}, {.seeds = {f64({1, 0}), Tensor(), f64({0, 1})}});
  EXPECT_TRUE(close(gradients[0], {2}, {4, 8}));
  EXPECT_TRUE(close(gradients[1], {2}, {4, 8}));
  EXPECT_TRUE(grad({}, {}).empty());
}

TEST(Autograd, ARootInsideTheGraphOfAnother) {
  const Tensor x = leaf({2}), y = x * x, z = y * y;
  EXPECT_TRUE(close(grad({z, y}, {x}, {.retain_graph = true})[0], {1}, {36}));
  backward({y, z});
  EXPECT_TRUE(close(x.grad(), {1}, {36}));
}

// --- Shapes of graphs.

TEST(Autograd, Diamonds) {
  const Tensor x = leaf({0.5, 2});
  const Tensor a = x * x, b = exp(a), c = a * 3;
  sum(b * c + a).backward();  // d/da (3 a e^a + a) = 3 e^a (1 + a) + 1
  const Tensor a0 = x.detach() * x.detach();
  EXPECT_TRUE(close(x.grad() - (exp(a0) * (a0 + 1) * 3 + 1) * x.detach() * 2, {2}, {0, 0}, 1e-12));
}

TEST(Autograd, ANodeUsedManyTimes) {
  const Tensor x = leaf({1, 2}), y = x * x;
  Tensor total = y;
  for (int i = 0; i < 1000; ++i) total = total + y;
  sum(total).backward();
  EXPECT_TRUE(close(x.grad(), {2}, {2002, 4004}));
}

TEST(Autograd, DoublingInEachOfManyLayers) {
  const Tensor x = leaf({1});
  Tensor y = x;
  for (int i = 0; i < 40; ++i) y = y + y;  // 2^40 paths
  y.backward();
  EXPECT_TRUE(close(x.grad(), {1}, {0x1p40}));
}

TEST(Autograd, ViewsOfLeaves) {
  const Tensor x = counting({2, 3}).requires_grad_();
  sum(transpose(x) * transpose(x) + unsqueeze(select(x, 0, 1), 1)).backward();
  EXPECT_TRUE(close(x.grad(), {2, 3}, {0, 2, 4, 6 + 2, 8 + 2, 10 + 2}));
}

// --- Higher derivatives.

TEST(Autograd, ThirdDerivative) {
  const Tensor x = leaf({2});
  Tensor y = x * x * x * x;
  for (int i = 0; i < 3; ++i) y = grad({y}, {x}, {.create_graph = true})[0];
  EXPECT_TRUE(close(y, {1}, {48}, 1e-14));
}

// The gradients of these functions are constant where they exist: the second derivative is 0, not an error.
TEST(Autograd, SecondDerivativesOfPiecewiseLinearFunctions) {
  const std::vector<Tensor (*)(const Tensor&)> functions = {
      [](const Tensor& x) { return relu(x); }, [](const Tensor& x) { return abs(x); },
      [](const Tensor& x) { return maximum(x, 0); }, [](const Tensor& x) { return max(x); },
      [](const Tensor& x) { return clamp(x, -1, 1); }};
  for (const auto& f : functions) {
    const Tensor x = leaf({-0.5, 2});
    const Tensor first = grad({sum(f(x))}, {x}, {.create_graph = true})[0];
    EXPECT_TRUE(close(grad({sum(first)}, {x})[0], {2}, {0, 0}));
  }
}

TEST(Autograd, AGradientThatDependsOnNothingSavedHasNoGraph) {
  const Tensor x = leaf({1, 2});
  EXPECT_FALSE(grad({sum(x * 3)}, {x}, {.create_graph = true})[0].requires_grad());
}

TEST(Autograd, BackwardInsideAPassOfGradients) {
  const Tensor x = leaf({1, 2}), w = leaf({3, 4});
  const Tensor first = grad({sum(w * x * x)}, {x}, {.create_graph = true})[0];  // 2 w x
  sum(first * first).backward();
  EXPECT_TRUE(close(x.grad(), {2}, {8 * 9 * 1, 8 * 16 * 2}));
  EXPECT_TRUE(close(w.grad(), {2}, {8 * 3 * 1, 8 * 4 * 4}));
}

TEST(Autograd, SeedsHaveGradientsToo) {
  const Tensor x = leaf({1, 2}), seed = leaf({1, 1});
  const Tensor first = grad({x * x}, {x}, {.seeds = {seed}, .create_graph = true})[0];  // 2 x seed
  EXPECT_TRUE(close(grad({sum(first)}, {seed})[0], {2}, {2, 4}));
}

TEST(Autograd, CreateGraphKeepsTheGraph) {
  const Tensor x = leaf({3}), y = x * x * x;
  y.backward({}, {.create_graph = true});
  const Tensor first = x.grad();
  EXPECT_TRUE(first.requires_grad());
  y.backward({}, {.retain_graph = true});
  EXPECT_TRUE(close(grad({first}, {x})[0], {1}, {18}));
}

// --- Failures.

// A value that was changed in place ends the pass after the gradients of some leaves have been summed.
TEST(Autograd, AFailedBackwardChangesNoGradient) {
  const Tensor x = leaf({1, 2}), w = leaf({3, 4});
  Tensor changed = f64({5, 6});
  sum(x).backward();
  Tensor early = w * 2, late = x * changed;
  early.retain_grad();
  const Tensor loss = sum(late * w + early);
  {
    const NoGrad unrecorded;
    changed.fill_(0);
  }
  EXPECT_TRUE(throws(Code::invalid, {"changed in place"}, [&] { loss.backward(); }));
  EXPECT_TRUE(close(x.grad(), {2}, {1, 1}));
  EXPECT_FALSE(w.grad().defined());
  EXPECT_FALSE(early.grad().defined());
  sum(x * w).backward();  // a failed pass leaves no leaf claimed
  EXPECT_TRUE(close(x.grad(), {2}, {4, 5}));
  EXPECT_TRUE(close(w.grad(), {2}, {1, 2}));
}

TEST(Autograd, AFailedBackwardCanBeRepeatedWhereTheGraphIsRetained) {
  const Tensor x = leaf({1, 2});
  Tensor changed = f64({5, 6});
  const Tensor good = exp(x), loss = sum(good) + sum(x * changed);
  {
    const NoGrad unrecorded;
    changed.fill_(0);
  }
  EXPECT_TRUE(throws(Code::invalid, {"changed in place"}, [&] { loss.backward({}, {.retain_graph = true}); }));
  good.backward(f64({1, 1}));
  EXPECT_TRUE(close(x.grad() - exp(x.detach()), {2}, {0, 0}));
}

}  // namespace
}  // namespace plugrad::test
