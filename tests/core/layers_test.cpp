// Compares layers and normalisation with plain loops.
#include <tests/core/expect.hpp>

#include <cmath>

namespace plugrad::test {
namespace {

TEST(Layers, LinearTransposesTheWeight) {
  const Tensor weight = f64({1, 2, 3, -1, 0, 2}, {2, 3}), bias = f64({10, 20});
  EXPECT_TRUE(close(linear(f64({1, 0, 2}), weight, bias), {2}, {17, 23}));
  EXPECT_TRUE(close(linear(f64({1, 0, 2, 0, 1, 0}, {1, 2, 3}), weight), {1, 2, 2}, {7, 3, 2, 0}));
  EXPECT_TRUE(close(linear(f64({1, 0, 2}), f64({1, 2, 3}), f64({5}, {})), {}, {12}));
  EXPECT_TRUE(close(linear(zeros({2, 0, 3}, DType::f64), weight, bias), {2, 0, 2}, {}));
  EXPECT_TRUE(close(linear(zeros({2, 0}, DType::f64), zeros({2, 0}, DType::f64), bias), {2, 2}, {10, 20, 10, 20}));
  EXPECT_TRUE(throws(Code::invalid, {"[linear]", "(2,)", "(2, 3)"}, [&] { linear(bias, weight); }));
  EXPECT_TRUE(throws(Code::invalid, {"[linear]", "bias", "(3,)"}, [&] { linear(f64({1, 0, 2}), weight, f64({1, 2, 3})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[linear]", "i64"}, [&] { linear(i64({1, 0, 2}), weight); }));
}

// The sizes cover each way in which a kernel may divide a product.
TEST(Layers, TheBiasIsAddedInAnyShapeOfProduct) {
  manual_seed(8);
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16})
    for (const int64_t rows : {1, 3, 40, 300})
      for (const auto& [k, n] : {std::pair<int64_t, int64_t>{5, 7}, {70, 1}, {130, 200}, {1600, 70}}) {
        const Tensor x = cast(randn({rows, k}), dtype), weight = cast(randn({n, k}), dtype), bias = cast(randn({n}), dtype);
        const Tensor wide = matmul(cast(x, DType::f64), transpose(cast(weight, DType::f64))) + cast(bias, DType::f64);
        const double off = dtype == DType::bf16 ? 1.0 : 1e-3;
        EXPECT_TRUE(close(cast(linear(x, weight, bias), DType::f64), {rows, n}, elements(wide), off));
        const Tensor turned = transpose(clone(transpose(weight)));
        EXPECT_TRUE(close(cast(linear(x, turned, bias), DType::f64), {rows, n}, elements(wide), off));
      }
}

TEST(Layers, EmbeddingPicksRowsAndAddsTheirGradients) {
  const Tensor weight = counting({4, 2}).requires_grad_();
  const Tensor picked = embedding(weight, i64({3, 0, 3, 1, 3, 0}, {2, 3}));
  EXPECT_TRUE(close(picked, {2, 3, 2}, {6, 7, 0, 1, 6, 7, 2, 3, 6, 7, 0, 1}));
  EXPECT_TRUE(close(grad({sum(picked)}, {weight})[0], {4, 2}, {2, 2, 1, 1, 0, 0, 3, 3}));
  EXPECT_TRUE(close(embedding(weight, i64({2}, {})), {2}, {4, 5}));
  EXPECT_TRUE(close(embedding(weight, zeros({0, 2}, DType::i64)), {0, 2, 2}, {}));
  EXPECT_TRUE(throws(Code::index_error, {"gather"}, [&] { elements(embedding(weight, i64({4}))); }));
  EXPECT_TRUE(throws(Code::invalid, {"[embedding]", "f64", "an integer dtype"}, [&] { embedding(weight, f64({1})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[embedding]", "(2,)"}, [] { embedding(f64({1, 2}), i64({1})); }));
}

TEST(Layers, DropoutKeepsTheMean) {
  manual_seed(3);
  const Tensor x = full({200, 100}, 3, DType::f64), y = dropout(x, 0.25);
  int64_t dropped = 0;
  for (double each : elements(y)) {
    ASSERT_TRUE(each == 0 || std::abs(each - 4) < 1e-12) << each;
    dropped += each == 0;
  }
  EXPECT_NEAR(static_cast<double>(dropped), 5000, 300);
  EXPECT_TRUE(dropout(x, 0.25, false).is_same(x));
  EXPECT_TRUE(dropout(x, 0).is_same(x));
  EXPECT_TRUE(close(dropout(f64({1, HUGE_VAL}), 1), {2}, {0, 0}));
  EXPECT_TRUE(close(dropout(zeros({0})), {0}, {}));
  EXPECT_TRUE(throws(Code::invalid, {"[dropout]", "1.5"}, [&] { dropout(x, 1.5); }));
}

// x normalised within groups: group(i) is the group of element i.
template <class F> std::vector<double> normalised(const std::vector<double>& x, size_t groups, double eps, F group) {
  std::vector<double> count(groups), mean(groups), variance(groups), out;
  for (size_t i = 0; i < x.size(); ++i) ++count[group(i)], mean[group(i)] += x[i];
  for (size_t g = 0; g < groups; ++g) mean[g] /= count[g];
  for (size_t i = 0; i < x.size(); ++i) variance[group(i)] += std::pow(x[i] - mean[group(i)], 2) / count[group(i)];
  for (size_t i = 0; i < x.size(); ++i) out.push_back((x[i] - mean[group(i)]) / std::sqrt(variance[group(i)] + eps));
  return out;
}
std::vector<double> scaled(std::vector<double> y, size_t inner, const std::vector<double>& weight,
                           const std::vector<double>& bias) {
  for (size_t i = 0; i < y.size(); ++i) y[i] = y[i] * weight[i / inner % weight.size()] + bias[i / inner % bias.size()];
  return y;
}

TEST(Normalization, LayersOfTheLastAxes) {
  const std::vector<double> values = spread(24, -2, 3), weight = spread(12, 0, 1), bias = spread(12, -1, 1);
  const Tensor x = f64(values, {2, 3, 4}), w = f64(weight, {3, 4}), b = f64(bias, {3, 4});
  const auto plain = normalised(values, 2, 1e-5, [](size_t i) { return i / 12; });
  EXPECT_TRUE(close(layer_norm(x, {3, 4}), {2, 3, 4}, plain, 1e-13));
  EXPECT_TRUE(close(layer_norm(x, {3, 4}, w, b), {2, 3, 4}, scaled(plain, 1, weight, bias), 1e-13));
  EXPECT_TRUE(
      close(layer_norm(x, {4}, {}, {}, 0.5), {2, 3, 4}, normalised(values, 6, 0.5, [](size_t i) { return i / 4; }), 1e-13));
  const Tensor strided = transpose(contiguous(transpose(x)));
  EXPECT_TRUE(close(layer_norm(strided, {3, 4}), {2, 3, 4}, plain, 1e-13));
  EXPECT_TRUE(close(layer_norm(cast(x, DType::bf16), {3, 4}), {2, 3, 4}, plain, 0.03));
  EXPECT_EQ(layer_norm(cast(x, DType::bf16), {4}).dtype(), DType::bf16);
  EXPECT_TRUE(close(layer_norm(zeros({0, 4}), {4}), {0, 4}, {}));
  EXPECT_TRUE(throws(Code::invalid, {"[layer_norm]", "(2, 3, 4)", "(3,)"}, [&] { layer_norm(x, {3}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[layer_norm]", "weight", "(4,)"}, [&] { layer_norm(x, {4}, w); }));
}

TEST(Normalization, RootMeanSquare) {
  const Tensor x = f64({3, 4, 0, 0}, {2, 2});
  const double root = std::sqrt(12.5);
  EXPECT_TRUE(close(rms_norm(x, {2}, f64({1, 2}), 0.0), {2, 2}, {3 / root, 8 / root, std::nan(""), std::nan("")}, 1e-15));
  EXPECT_TRUE(close(rms_norm(x, {2}, {}, 0.25), {2, 2}, {3 / std::sqrt(12.75), 4 / std::sqrt(12.75), 0, 0}, 1e-15));
  EXPECT_TRUE(close(rms_norm(full({1}, 1e-4, DType::f32), {1}), {1}, {1e-4 / std::sqrt(1e-8 + 0x1p-23)}, 1e-6));
  EXPECT_TRUE(throws(Code::invalid, {"[rms_norm]", "(2, 2)", "()"}, [&] { rms_norm(x, {}); }));
}

TEST(Normalization, BatchesMoveTheRunningStatistics) {
  const std::vector<double> values = spread(24, -2, 3), weight = {2, -1}, bias = {0.5, 3};
  const Tensor x = f64(values, {3, 2, 4});
  const Tensor average = f64({1, 2}), variance = f64({3, 4});
  const auto plain = normalised(values, 2, 1e-5, [](size_t i) { return i / 4 % 2; });
  const Tensor out = batch_norm(x, average, variance, f64(weight), f64(bias), true, 0.25);
  EXPECT_TRUE(close(out, {3, 2, 4}, scaled(plain, 4, weight, bias), 1e-13));
  std::vector<double> means, variances;
  for (size_t c = 0; c < 2; ++c) {
    double mean = 0, squares = 0;
    for (size_t i = 0; i < 24; ++i) mean += i / 4 % 2 == c ? values[i] / 12 : 0;
    for (size_t i = 0; i < 24; ++i) squares += i / 4 % 2 == c ? std::pow(values[i] - mean, 2) : 0;
    means.push_back(0.75 * (1 + static_cast<double>(c)) + 0.25 * mean);
    variances.push_back(0.75 * (3 + static_cast<double>(c)) + 0.25 * squares / 11);
  }
  EXPECT_TRUE(close(average, {2}, means, 1e-14));
  EXPECT_TRUE(close(variance, {2}, variances, 1e-14));
  std::vector<double> running;
  for (size_t i = 0; i < 24; ++i) running.push_back((values[i] - means[i / 4 % 2]) / std::sqrt(variances[i / 4 % 2] + 1e-5));
  EXPECT_TRUE(close(batch_norm(x, average, variance), {3, 2, 4}, running, 1e-13));
}

TEST(Normalization, BatchErrors) {
  const Tensor x = counting({2, 3});
  EXPECT_TRUE(throws(Code::invalid, {"[batch_norm]", "running"}, [&] { batch_norm(x); }));
  EXPECT_TRUE(throws(Code::invalid, {"[batch_norm]", "running_mean", "(2,)"}, [&] { batch_norm(x, f64({1, 2})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[batch_norm]", "(1, 3)"}, [] { batch_norm(counting({1, 3}), {}, {}, {}, {}, true); }));
  EXPECT_TRUE(throws(Code::invalid, {"[batch_norm]", "(3,)"}, [] { batch_norm(counting({3})); }));
}

TEST(Normalization, GroupsOfChannels) {
  const std::vector<double> values = spread(24, -2, 3), weight = spread(4, 0, 1), bias = spread(4, -1, 1);
  const auto plain = normalised(values, 4, 1e-5, [](size_t i) { return i / 6; });
  const Tensor x = f64(values, {2, 4, 3});
  EXPECT_TRUE(close(group_norm(x, 2, f64(weight), f64(bias)), {2, 4, 3}, scaled(plain, 3, weight, bias), 1e-13));
  EXPECT_TRUE(close(group_norm(zeros({0, 4, 3}), 2), {0, 4, 3}, {}));
  EXPECT_TRUE(throws(Code::invalid, {"[group_norm]", "3 groups", "(2, 4, 3)"}, [&] { group_norm(x, 3); }));
}

// A pass that creates a graph composes the gradients of other ops; a pass without a graph uses the device's kernels.
struct Fused {
  const char* name;
  Shape x, parameters;
  Tensor (*apply)(const Tensor& x, const Tensor& weight, const Tensor& bias);
};
const Fused kFused[] = {
    {"many rows",
     {300, 33},
     {33},
     [](const Tensor& x, const Tensor& w, const Tensor& b) { return layer_norm(x, {33}, w, b); }},
    {"long rows",
     {3, 5000},
     {5000},
     [](const Tensor& x, const Tensor& w, const Tensor& b) { return layer_norm(x, {5000}, w, b); }},
    {"rms rows",
     {70, 130},
     {130},
     [](const Tensor& x, const Tensor& w, const Tensor& b) { return rms_norm(x, {130}, w) + b; }},
    {"images",
     {3, 2, 30, 30},
     {2},
     [](const Tensor& x, const Tensor& w, const Tensor& b) { return batch_norm(x, {}, {}, w, b, true); }},
    {"small images",
     {5, 19, 3, 3},
     {19},
     [](const Tensor& x, const Tensor& w, const Tensor& b) { return batch_norm(x, {}, {}, w, b, true); }},
    {"features",
     {130, 37},
     {37},
     [](const Tensor& x, const Tensor& w, const Tensor& b) { return batch_norm(x, {}, {}, w, b, true); }},
    {"groups", {4, 6, 11}, {6}, [](const Tensor& x, const Tensor& w, const Tensor& b) { return group_norm(x, 3, w, b); }},
    {"instances",
     {4, 6, 11},
     {6},
     [](const Tensor& x, const Tensor& w, const Tensor& b) { return instance_norm(x, {}, {}, w, b); }},
    {"softmax", {40, 67}, {67}, [](const Tensor& x, const Tensor& w, const Tensor& b) { return softmax(x * w, 1) * b; }},
    {"gelu", {40, 67}, {67}, [](const Tensor& x, const Tensor& w, const Tensor& b) { return gelu(x * w) * b; }},
    {"silu", {40, 67}, {67}, [](const Tensor& x, const Tensor& w, const Tensor& b) { return silu(x * w) * b; }},
};

TEST(Normalization, GradientsOfKernelsEqualTheComposedOnes) {
  manual_seed(5);
  for (const Fused& each : kFused) {
    const Tensor x = (randn(each.x, DType::f64) + 50).requires_grad_();
    const Tensor w = randn(each.parameters, DType::f64).requires_grad_();
    const Tensor b = randn(each.parameters, DType::f64).requires_grad_();
    const Tensor loss = sum(sin(each.apply(x, w, b)));
    const std::vector<Tensor> fused = grad({loss}, {x, w, b}, {.retain_graph = true});
    const std::vector<Tensor> composed = grad({loss}, {x, w, b}, {.create_graph = true});
    for (size_t i = 0; i < fused.size(); ++i)
      EXPECT_TRUE(close(fused[i], composed[i].shape(), elements(composed[i].detach()), 1e-9)) << each.name << i;
  }
}

// The mean of these rows is far larger than their spread, so it must be subtracted before elements are squared.
TEST(Normalization, RowsFarFromZero) {
  std::vector<double> values;
  for (int i = 0; i < 2 * 3000; ++i) values.push_back(100000 + i % 7 - 3);
  const auto expected = normalised(values, 2, 1e-5, [](size_t i) { return i / 3000; });
  EXPECT_TRUE(close(layer_norm(of(DType::f32, values, {2, 3000}), {3000}), {2, 3000}, expected, 2e-2));
  EXPECT_TRUE(close(layer_norm(f64(values, {2, 3000}), {3000}), {2, 3000}, expected, 1e-9));
}

}  // namespace
}  // namespace plugrad::test
