// Functions of functions. python/tests/test_func.py and test_vmap_samples.py have more rows.
#include <plugrad/func/jvp.hpp>
#include <plugrad/func/vjp.hpp>
#include <plugrad/func/vmap.hpp>
#include <tests/core/expect.hpp>

#include <cmath>
#include <thread>

namespace plugrad::test {
namespace {
using func::Tensors;

Tensor examples() { return f64({1, 2, 3, 4, 5, 6}, {3, 2}); }

TEST(Vmap, AppliesAFunctionToEachExample) {
  const auto f = [](const Tensors& in) { return Tensors{sum(in[0] * in[1]), in[1] + 1}; };
  const Tensor shared = f64({10, 100});
  const Tensors made = func::vmap(f, {examples(), shared}, {.in_axes = {0, std::nullopt}, .out_axes = {0, 1}});
  EXPECT_TRUE(close(made[0], {3}, {210, 430, 650}));
  EXPECT_TRUE(close(made[1], {2, 3}, {11, 11, 11, 101, 101, 101}));
}

TEST(Vmap, NestsWithGradients) {
  const auto cube = [](const Tensors& in) { return Tensors{sum(in[0] * in[0] * in[0])}; };
  const auto slope = [&](const Tensors& in) { return func::vjp(cube, in).pullback({full({}, 1, DType::f64)}); };
  const auto row = [&](const Tensors& in) { return func::vmap(slope, in); };
  EXPECT_TRUE(close(func::vmap(row, {examples()})[0], {3, 2}, {3, 12, 27, 48, 75, 108}));
}

TEST(Vmap, GradientsReachCapturedTensors) {
  Tensor w = f64({1, -1}).requires_grad_();
  const auto f = [&](const Tensors& in) { return Tensors{sum(in[0] * w)}; };
  sum(func::vmap(f, {examples()})[0]).backward();
  EXPECT_TRUE(close(w.grad(), {2}, {9, 12}));
}

TEST(Vmap, GradientsOutliveTheCall) {
  Tensor x = examples().requires_grad_();
  Tensor y;
  {
    const func::Examples all(3);
    const Tensor one = all.wrap(x, 0);
    y = all.unwrap(exp(one * 0.1) * one, 0);
  }
  const Tensor slopes = grad({y}, {x}, {.seeds = {ones_like(y)}, .create_graph = true})[0];
  EXPECT_NEAR(slopes.to_vector<double>()[5], std::exp(0.6) * 1.6, 1e-12);
  EXPECT_NEAR(grad({slopes}, {x}, {.seeds = {ones_like(y)}})[0].to_vector<double>()[5], std::exp(0.6) * 0.26, 1e-12);
}

TEST(Vmap, AThreadRunsBackwardOfAnother) {
  Tensor w = f64({1, -1}).requires_grad_();
  const Tensor y = func::vmap([&](const Tensors& in) { return Tensors{sum(in[0] * exp(w))}; }, {examples()})[0];
  std::thread([&] { sum(y).backward(); }).join();
  EXPECT_NEAR(w.grad().to_vector<double>()[1], 12 * std::exp(-1), 1e-12);
}

TEST(Vmap, RefusesWhatHasNoSingleValue) {
  const auto reads = [](const Tensors& in) { return Tensors{full({}, sum(in[0]).item<double>())}; };
  EXPECT_TRUE(throws(Code::invalid, {"[vmap]", "3 examples"}, [&] { func::vmap(reads, {examples()}); }));
  Tensor outside = f64({0, 0});
  const auto writes = [&](const Tensors& in) {
    outside.add_(in[0]);
    return in;
  };
  EXPECT_TRUE(throws(Code::invalid, {"writes in place", "from outside"}, [&] { func::vmap(writes, {examples()}); }));
  EXPECT_TRUE(close(outside, {2}, {0, 0}));
  EXPECT_TRUE(throws(Code::invalid, {"no input has examples"}, [&] { func::vmap(reads, {}); }));
}

TEST(Vmap, FreesItsMemory) {
  const Device device = default_device();
  const auto f = [](const Tensors& in) { return Tensors{exp(in[0]) * 2 + sum(in[0])}; };
  const Tensor x = full({50, 4000}, 1);
  func::vmap(f, {x});
  const uint64_t before = device.memory().active;
  for (int i = 0; i < 3; ++i) func::vmap(f, {x});
  EXPECT_EQ(device.memory().active, before);
}

TEST(Jvp, DerivativesAlongADirection) {
  const auto f = [](const Tensors& in) { return Tensors{in[0] * in[1], sum(exp(in[0]))}; };
  const auto [results, tangents] = func::jvp(f, {f64({0, 2}), f64({5, 7})}, {f64({1, 10}), f64({100, 1000})});
  EXPECT_TRUE(close(results[0], {2}, {0, 14}));
  EXPECT_TRUE(close(tangents[0], {2}, {5, 2070}));
  EXPECT_TRUE(close(tangents[1], {}, {1 + 10 * std::exp(2)}, 1e-12));
}

TEST(Jvp, DerivativesOfEachOrder) {
  const Tensor one = full({}, 1, DType::f64), at = full({}, 0.5, DType::f64);
  func::Function f = [](const Tensors& in) { return Tensors{sin(in[0])}; };
  for (int order = 1; order <= 4; ++order) {
    f = [f, one](const Tensors& in) { return func::jvp(f, in, {one}).tangents; };
    const double expected = order % 2 ? std::cos(0.5) : std::sin(0.5);
    EXPECT_NEAR(f({at})[0].item<double>(), order == 2 || order == 3 ? -expected : expected, 1e-12);
  }
}

TEST(Jvp, WritesInPlaceHaveTangents) {
  const auto f = [](const Tensors& in) {
    Tensor y = zeros({3}, DType::f64);
    slice(y, 0, 0, 2).copy_(in[0]);
    y.mul_(3);
    slice(y, 0, 1, 3).add_(in[0]);
    return Tensors{y * y};
  };
  const auto [results, tangents] = func::jvp(f, {f64({1, 2})}, {f64({1, 0})});
  EXPECT_TRUE(close(results[0], {3}, {9, 49, 4}));
  EXPECT_TRUE(close(tangents[0], {3}, {18, 14, 0}));
}

}  // namespace
}  // namespace plugrad::test
