// Calls that run together as fusions give the same bits as the calls one by one.
#include <tests/steps/fused.hpp>

namespace plugrad::test {
namespace {
bool runs_fusions() {
  const Function f = [](const Tensors& x) -> Tensors { return {relu(x[0]) * x[1]}; };
  return explained(f, two({70}, {70})).find("fusion of relu and mul over 70") != std::string::npos;
}

// Returns whether the device's fusions contain sums.
bool sums_in_fusions() {
  const Function f = [](const Tensors& x) -> Tensors { return {sum(relu(x[0]) * x[1])}; };
  return explained(f, two({70}, {70})).find("fusion of relu, mul and sum") != std::string::npos;
}

bool updates_in_fusions() {
  const std::string_view kind = default_device().name();
  return kind.starts_with("cpu") || kind.starts_with("reference") || kind.starts_with("sim") || kind.starts_with("cuda");
}

class Fusions : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!runs_fusions()) GTEST_SKIP() << default_device().name() << " runs no fusions";
  }
};

TEST_F(Fusions, ComputeChains) {
  const Function f = [](const Tensors& x) -> Tensors {
    const Tensor y = relu(x[0] * 2 + x[1]);
    return {exp(y) - y, where(gt(y, 1), y, x[1])};
  };
  for (const int64_t n : {2, 63, 1000, 5000}) expect_equal(f, [n] { return two({n}, {n}); });
  expect_equal(f, [] { return two({40, 70}, {70}); });
  expect_equal(f, [] { return two({40, 70}, {40, 1}); });
  expect_equal(f, [] { return two({9, 40, 30}, {40, 1}); });
}

TEST_F(Fusions, Reduce) {
  const Function f = [](const Tensors& x) -> Tensors {
    const Tensor y = x[0] * x[1];
    return {sum(y), sum(y, {0}), sum(y, {1}), max(abs(y), {1}), y};
  };
  for (const Shape& shape :
       {Shape{3, 5}, Shape{100, 64}, Shape{700, 130}, Shape{2000, 33}, Shape{5, 9000}, Shape{65, 1000}, Shape{2, 300000}})
    expect_equal(f, [&] { return two(shape, shape); });
}

TEST_F(Fusions, GoOnAfterRows) {
  const Function f = [](const Tensors& x) -> Tensors {
    const Tensor centred = x[0] - mean(x[0], {-1}, true), variance = mean(centred * centred, {-1}, true);
    const Tensor normal = centred / sqrt(variance + 1e-5) * x[1], e = exp(normal - max(normal, {-1}, true));
    return {normal, e / sum(e, {-1}, true), sum(normal, {0})};
  };
  for (const int64_t rows : {1, 7, 130})
    for (const int64_t columns : {2, 17, 64, 700, 3000}) expect_equal(f, [&] { return two({rows, columns}, {columns}); });
}

TEST_F(Fusions, WriteInPlace) {
  const Function f = [](const Tensors& x) -> Tensors {
    const NoGrad unrecorded;
    Tensor a = x[0], b = x[1];
    const Tensor before = a + b;
    a.mul_(0.9);
    a.add_(b);
    b.add_(a, -1);
    const Tensor after = a * before;
    a.copy_(after - b);
    return {before, after};
  };
  for (const int64_t n : {3, 1000, 5000}) expect_equal(f, [n] { return two({n}, {n}); });
}

// Steps of optimisers on parameters, on intermediate values, and with a gradient that is broadcast or is also updated.
TEST_F(Fusions, UpdateParameters) {
  const Function f = [](const Tensors& x) -> Tensors {
    const NoGrad unrecorded;
    Tensor a = x[0], b = x[1], first = a * 0.1, second = b * b, none;
    sgd_step(a, none, b, {.rate = 0.1, .weight_decay = 0.01});
    sgd_step(a, first, b - a, {.rate = 0.1, .momentum = 0.9, .nesterov = true});
    adam_step(b, first, second, a * 2, {0.01, 0.9, 0.99, 1e-8, 0.1, true, 3});
    sgd_step(first, none, first, {.rate = 0.5});
    adam_step(a, first, second, full(a.shape(), 0.25), {0.01, 0.8, 0.999, 1e-6, 0.01, false, 7});
    return {first + a, second};
  };
  for (const int64_t n : {3, 1000, 5000, 300001}) expect_equal(f, [n] { return two({n}, {n}); });
  expect_equal(f, [] { return two({70, 130}, {70, 130}); });
  const Function repeating = [](const Tensors& x) -> Tensors {
    const NoGrad unrecorded;
    Tensor a = x[0], first = a * 0.1, second = a * a, none;
    const Tensor grad = expand(x[1], a.shape());
    sgd_step(a, none, grad, {.rate = 0.1});
    adam_step(a, first, second, grad, {0.01, 0.8, 0.999, 1e-6, 0.01, false, 7});
    return {first, second};
  };
  for (const Shape& shape : {Shape{1, 130}, Shape{70, 1}, Shape{1, 1}})
    expect_equal(repeating, [&] { return two({70, 130}, shape); });
  for (const Shape& shape : {Shape{8, 1, 48}, Shape{1, 6, 1}})
    expect_equal(repeating, [&] { return two({8, 6, 48}, shape); });
  if (!updates_in_fusions()) return;
  const std::string text = explained(f, two({5000}, {5000}));
  for (const char* part : {"descent_step", "sgd_step", "adam_step"})
    EXPECT_NE(text.find(part, text.find("fusion of")), std::string::npos) << text;
  EXPECT_EQ(text.find("the device's fusions do not contain it"), std::string::npos) << text;
}

// Outputs larger than the caches: at aligned addresses, in unaligned rows, and in unaligned memory.
TEST_F(Fusions, WriteLargeOutputs) {
  if (default_device().name().rfind("cpu", 0) != 0) GTEST_SKIP() << "no size is special";
  const Function f = [](const Tensors& x) -> Tensors {
    const Tensor y = relu(x[0]) * x[1], z = x[0] - y, w = abs(z) + 1;
    return {y, w, sum(z), sum(w), exp(w)};
  };
  const Function shifted = [](const Tensors& x) -> Tensors {
    const NoGrad unrecorded;
    Tensor to = slice(x[1], 0, 1, x[1].size(0));
    to.copy_(relu(slice(x[0], 0, 1, x[0].size(0))) * 2 - 1);
    return {slice(x[1], 0, 0, 100)};
  };
  constexpr int64_t kCount = (int64_t{17} << 20) / 4 + 5;
  expect_equal(f, [] { return two({kCount}, {kCount}); });
  expect_equal(f, [] { return two({4200, 1056}, {1056}); });
  expect_equal(f, [] { return two({4200, 1057}, {1057}); });
  expect_equal(shifted, [] { return two({kCount}, {kCount}); });
}

TEST_F(Fusions, KeepTheOrderOfViews) {
  const Function f = [](const Tensors& x) -> Tensors {
    const NoGrad unrecorded;
    Tensor a = x[0];
    const Tensor first = a * 2;
    slice(a, 0, 1, 60).copy_(slice(a, 0, 0, 59) + 1);
    const Tensor second = a * 3;
    slice(a, 0, 0, 30).add_(slice(x[1], 0, 0, 30));
    return {first, second, a * 4, transpose(reshape(a, {10, 7})) + 1};
  };
  expect_equal(f, [] { return two({70}, {70}); });
}

TEST_F(Fusions, SayWhatTheyAre) {
  if (!sums_in_fusions()) GTEST_SKIP() << "the device's fusions contain no sums";
  const Function f = [](const Tensors& x) -> Tensors { return {cumsum(relu(x[0] + x[1]), 0), sum(x[0] * x[1], {0})}; };
  const std::string text = explained(f, two({8, 8}, {8, 8}));
  for (const char* part :
       {"fusion of add, relu, mul and sum over 8 x 8", "alone, because it is not elementwise and not a sum: cumsum"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST_F(Fusions, LeaveOverlappingMemoryToTheFunction) {
  if (!(default_device().capabilities() & PLUGRAD_HOST_MEM)) GTEST_SKIP() << "it has no DLPack type";
  const auto f = [](const Tensor& a, const Tensor& b) {
    const NoGrad unrecorded;
    Tensor to = b;
    to.mul_(2);
    to.add_(a);
    return to * a;
  };
  const Warnings warnings;
  auto step = compile(f, {.name = "meet", .fusion_elements = 1});
  step(ones({50}), ones({50}));
  const Tensor base = ones({50});
  const auto again = [&] { return dlpack::import_managed(dlpack::export_managed(base), default_device()); };
  const Tensor made = step(again(), again());
  EXPECT_EQ(slice(made, 0, 0, 1).item<float>(), 16);  // 1 * 2, + 2, times itself
  ASSERT_EQ(warnings.lines.size(), 1u);
  EXPECT_NE(warnings.lines[0].find("'meet' runs op by op: two of its tensors overlap in memory"), std::string::npos);
}

// If a kernel declines a fusion, its calls run one by one, in memory that the run has used before.
TEST_F(Fusions, RunSinglyInRewrittenMemory) {
  const Function f = [](const Tensors& x) -> Tensors {
    const NoGrad unrecorded;
    Tensor t = x[0] * 2;
    const Tensor u = matmul(x[0], x[1]), v = matmul(x[1], x[0]);
    t.copy_(pow(abs(u), 2.5) + v);
    const Tensor y = t * 3 + 1;
    return {matmul(u, y) + matmul(v, y)};
  };
  expect_equal(f, [] { return two({32, 32}, {32, 32}); });
}

TEST_F(Fusions, LeaveUpdatesOfRowsAlone) {
  const auto run = [](bool compiled) {
    manual_seed(4);
    Tensor w = rand({20, 1}).requires_grad_();
    nn::Adam optimizer({w}, 0.01);
    Twin step(compiled, [&](const Tensor& x) {
      optimizer.zero_grad();
      sum(w * x).backward();
      optimizer.step();
    });
    for (int i = 0; i < 4; ++i) step(rand({20, 50}));
    return Tensors{w};
  };
  EXPECT_TRUE(same_bytes(run(true), run(false)));
}

TEST_F(Fusions, KeepAMeanBesideThem) {
  if (!sums_in_fusions()) GTEST_SKIP() << "the device's fusions contain no sums";
  const Function f = [](const Tensors& x) -> Tensors {
    const Tensor d = x[0] - x[1];
    return {mean(d * d), relu(d)};
  };
  const Tensors x = two({1000}, {1000});
  EXPECT_NE(explained(f, x).find("fusion of sub, mul, sum and relu over 1000"), std::string::npos) << explained(f, x);
}

TEST_F(Fusions, FollowAnOptimizer) {
  const auto run = [](bool compiled) {
    manual_seed(3);
    Tensors weights = {rand({900}).requires_grad_(), rand({900}).requires_grad_()};
    nn::Adam optimizer(weights, 0.01);
    Twin step(compiled, [&](const Tensor& x) {
      optimizer.zero_grad();
      Tensor loss = sum(relu(weights[0] * x) * weights[1]);
      loss.backward();
      optimizer.step();
      return loss;
    });
    Tensors all;
    for (int i = 0; i < 20; ++i) {
      optimizer.set_rate(0.01 / (1 + i));
      all.push_back(step(rand({900})).detach());
    }
    all.insert(all.end(), weights.begin(), weights.end());
    return all;
  };
  EXPECT_TRUE(same_bytes(run(true), run(false)));
}

}  // namespace
}  // namespace plugrad::test
