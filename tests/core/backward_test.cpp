// Gradients as functions: they give what backward() gives.
#include <tests/core/expect.hpp>

#include <limits>

namespace plugrad::test {
namespace {

using Function = std::function<Tensor(const Tensor&)>;

// f's gradient at x for this gradient of the result, by backward().
std::vector<double> by_autograd(const Function& f, const Tensor& x, const Tensor& grad) {
  Tensor leaf = x.detach();
  leaf.requires_grad_();
  f(leaf).backward(grad);
  return elements(leaf.grad());
}

const DType kDTypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16};

Tensor values(const Shape& shape, DType dtype, double phase = 0.5) {
  return of(dtype, spread(shape.count(), -3, 3, phase), shape);
}

TEST(Backward, OfElementwiseFunctions) {
  struct Row {
    Function f;
    std::function<Tensor(const Tensor& grad, const Tensor& x)> backward;
  };
  const Row rows[] = {
      {[](const Tensor& x) { return relu(x); }, [](const Tensor& g, const Tensor& x) { return relu_backward(g, x); }},
      {[](const Tensor& x) { return sigmoid(x); },
       [](const Tensor& g, const Tensor& x) { return sigmoid_backward(g, sigmoid(x)); }},
      {[](const Tensor& x) { return tanh(x); }, [](const Tensor& g, const Tensor& x) { return tanh_backward(g, tanh(x)); }},
      {[](const Tensor& x) { return gelu(x); }, [](const Tensor& g, const Tensor& x) { return gelu_backward(g, x); }},
      {[](const Tensor& x) { return gelu(x, Approximation::tanh); },
       [](const Tensor& g, const Tensor& x) { return gelu_backward(g, x, Approximation::tanh); }},
      {[](const Tensor& x) { return silu(x); }, [](const Tensor& g, const Tensor& x) { return silu_backward(g, x); }}};
  for (const DType dtype : kDTypes) {
    const Tensor x = values({4, 9}, dtype), grad = values({4, 9}, dtype, 0.2);
    for (const Row& row : rows) {
      EXPECT_TRUE(same_bits(elements(row.backward(grad, x)), by_autograd(row.f, x, grad))) << &row - rows << dtype;
      EXPECT_EQ(row.backward(zeros({0}, dtype), zeros({0}, dtype)).count(), 0);
    }
  }
}

TEST(Backward, OfSoftmax) {
  for (const DType dtype : kDTypes) {
    const Tensor x = values({3, 5, 4}, dtype), grad = values({3, 5, 4}, dtype, 0.2);
    for (const int axis : {0, 1, -1}) {
      const Function soft = [&](const Tensor& in) { return softmax(in, axis); };
      const Function log_soft = [&](const Tensor& in) { return log_softmax(in, axis); };
      EXPECT_TRUE(same_bits(elements(softmax_backward(grad, softmax(x, axis), axis)), by_autograd(soft, x, grad)));
      EXPECT_TRUE(
          same_bits(elements(log_softmax_backward(grad, log_softmax(x, axis), axis)), by_autograd(log_soft, x, grad)));
    }
  }
  EXPECT_EQ(elements(softmax_backward(f64({3}, {}), f64({1}, {}), 0)), (std::vector<double>{0}));
}

TEST(Backward, OfConvolutions) {
  const Tensor x = values({2, 4, 7, 6}, DType::f32), weight = values({6, 2, 3, 2}, DType::f32, 0.3);
  const Shape stride{2, 1}, padding{1, 0}, dilation{1, 2};
  const Function of_x = [&](const Tensor& in) { return conv2d(in, weight, {}, stride, padding, dilation, 2); };
  const Function of_weight = [&](const Tensor& w) { return conv2d(x, w, {}, stride, padding, dilation, 2); };
  const Tensor grad = values(of_x(x).shape(), DType::f32, 0.7);
  EXPECT_TRUE(same_bits(elements(convolution_input_backward(grad, weight, x.shape(), stride, padding, dilation, 2)),
                        by_autograd(of_x, x, grad)));
  EXPECT_TRUE(same_bits(elements(convolution_weight_backward(grad, x, weight.shape(), stride, padding, dilation, 2)),
                        by_autograd(of_weight, weight, grad)));
  const Tensor line = values({1, 2, 9}, DType::f64), kernel = values({3, 2, 4}, DType::f64);
  const Tensor up = values({1, 3, 6}, DType::f64, 0.1);
  EXPECT_TRUE(same_bits(elements(convolution_input_backward(up, kernel, line.shape())),
                        by_autograd([&](const Tensor& in) { return conv1d(in, kernel); }, line, up)));
  EXPECT_TRUE(throws(Code::invalid, {"[convolution_input_backward]", "grad is (1, 3, 6)", "expected (1, 3, 5)"},
                     [&] { convolution_input_backward(up, kernel, {1, 2, 8}); }));
  EXPECT_TRUE(throws(Code::invalid, {"expected the rank of"}, [&] { convolution_input_backward(up, kernel, {1, 2}); }));
  EXPECT_TRUE(
      throws(Code::invalid, {"1 to 3 spatial axes"}, [&] { convolution_weight_backward(f64({1}), line, {3, 2, 4}); }));
  EXPECT_TRUE(
      throws(Code::invalid, {"groups 3"}, [&] { convolution_weight_backward(up, line, {3, 2, 4}, {1}, {0}, {1}, 3); }));
}

TEST(Backward, OfMaxPool) {
  const Tensor x = values({2, 3, 6, 5}, DType::f32);
  const Function f = [](const Tensor& in) { return max_pool2d(in, {3, 2}, {2, 1}, {1, 0}); };
  const auto [pooled, indices] = max_pool2d_with_indices(x, {3, 2}, {2, 1}, {1, 0});
  const Tensor grad = values(pooled.shape(), DType::f32, 0.2);
  EXPECT_TRUE(same_bits(elements(max_pool_backward(grad, indices, x.shape())), by_autograd(f, x, grad)));
  EXPECT_TRUE(throws(Code::invalid, {"[max_pool_backward]"}, [&] { max_pool_backward(grad, indices, {2, 4, 6, 5}); }));
  EXPECT_TRUE(throws(Code::invalid, {"expected i64"}, [&] { max_pool_backward(grad, grad, x.shape()); }));
}

// The gradients of x, weight and bias by backward().
std::vector<std::vector<double>> norm_gradients(const std::function<Tensor(const std::vector<Tensor>&)>& f,
                                                std::vector<Tensor> inputs, const Tensor& grad) {
  for (Tensor& each : inputs) each = each.detach(), each.requires_grad_();
  f(inputs).backward(grad);
  std::vector<std::vector<double>> all;
  for (const Tensor& each : inputs) all.push_back(elements(each.grad()));
  return all;
}
std::vector<std::vector<double>> listed(const NormGradients& g) {
  std::vector<std::vector<double>> all{elements(g.x), elements(g.weight)};
  if (g.bias.defined()) all.push_back(elements(g.bias));
  return all;
}

// A device that composes the functions may compose their gradients in another order than backward() does.
::testing::AssertionResult alike(const std::vector<std::vector<double>>& actual,
                                 const std::vector<std::vector<double>>& expected, double tolerance) {
  if (actual.size() != expected.size()) return ::testing::AssertionFailure() << actual.size() << " gradients";
  for (size_t i = 0; i < actual.size(); ++i)
    if (auto result = close(actual[i], expected[i], tolerance); !result) return result << " in gradient " << i;
  return ::testing::AssertionSuccess();
}

TEST(Backward, OfNorms) {
  for (const DType dtype : kDTypes) {
    const Tensor x = values({3, 2, 8}, dtype), grad = values({3, 2, 8}, dtype, 0.2);
    const Tensor weight = values({2, 8}, dtype, 0.1), bias = values({2, 8}, dtype, 0.3);
    const auto layer = [](const std::vector<Tensor>& in) { return layer_norm(in[0], {2, 8}, in[1], in[2], 0.01); };
    const auto rms = [](const std::vector<Tensor>& in) { return rms_norm(in[0], {2, 8}, in[1], 0.01); };
    const double tolerance = dtype == DType::f16 || dtype == DType::bf16 ? 0.02 : 1e-5;
    const RowNorm rows = layer_norm_with_statistics(x, {2, 8}, weight, bias, 0.01);
    EXPECT_TRUE(alike({elements(rows.y)}, {elements(layer({x, weight, bias}))}, tolerance));
    EXPECT_EQ(rows.mean.shape(), Shape({3}));
    EXPECT_EQ(rows.rstd.dtype(), dtype == DType::f64 ? DType::f64 : DType::f32);
    EXPECT_TRUE(close(rows.mean, {3}, elements(mean(cast(x, DType::f64), {1, 2})), 1e-6));
    EXPECT_TRUE(alike(listed(layer_norm_backward(grad, x, {2, 8}, weight, rows.mean, rows.rstd)),
                      norm_gradients(layer, {x, weight, bias}, grad), tolerance));
    const RowNorm roots = rms_norm_with_statistics(x, {2, 8}, weight, 0.01);
    EXPECT_FALSE(roots.mean.defined());
    EXPECT_TRUE(alike({elements(roots.y)}, {elements(rms({x, weight}))}, tolerance));
    EXPECT_TRUE(alike(listed(rms_norm_backward(grad, x, {2, 8}, weight, roots.rstd)), norm_gradients(rms, {x, weight}, grad),
                      tolerance));
  }
  EXPECT_EQ(layer_norm_backward(zeros({0, 4}), zeros({0, 4}), {4}, {}, zeros({0}), zeros({0})).weight.shape(), Shape({4}));
  EXPECT_EQ(layer_norm_with_statistics(zeros({0, 4}), {4}).rstd.shape(), Shape({0}));
  EXPECT_TRUE(throws(Code::invalid, {"[layer_norm_backward]", "last extents"},
                     [] { layer_norm_backward(ones({2, 4}), ones({2, 4}), {3}, {}, ones({2}), ones({2})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[rms_norm_backward]", "weight (3,)"},
                     [] { rms_norm_backward(ones({2, 4}), ones({2, 4}), {4}, ones({3}), ones({2})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[rms_norm_backward]", "each of the 2 rows"},
                     [] { rms_norm_backward(ones({2, 4}), ones({2, 4}), {4}, {}, ones({4})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[layer_norm_with_statistics]"}, [] { layer_norm_with_statistics(ones({2}), {3}); }));
}

TEST(Backward, OfBatchNorm) {
  for (const DType dtype : kDTypes) {
    const Tensor x = values({4, 3, 5}, dtype), grad = values({4, 3, 5}, dtype, 0.2);
    const Tensor weight = values({3}, dtype, 0.1), bias = values({3}, dtype, 0.3);
    const auto f = [](const std::vector<Tensor>& in) { return batch_norm(in[0], {}, {}, in[1], in[2], true, 0.1, 0.01); };
    const double tolerance = dtype == DType::f16 || dtype == DType::bf16 ? 0.02 : 1e-5;
    const ChannelNorm channels = batch_norm_with_statistics(x, weight, bias, 0.01);
    EXPECT_TRUE(alike({elements(channels.y)}, {elements(f({x, weight, bias}))}, tolerance));
    EXPECT_TRUE(close(channels.mean, {3}, elements(mean(cast(x, DType::f64), {0, 2})), 1e-6));
    EXPECT_TRUE(alike(listed(batch_norm_backward(grad, x, weight, channels.mean, channels.variance, 0.01)),
                      norm_gradients(f, {x, weight, bias}, grad), tolerance));
  }
  EXPECT_EQ(batch_norm_backward(zeros({0, 4}), zeros({0, 4}), {}, zeros({4}), ones({4})).bias.shape(), Shape({4}));
  EXPECT_TRUE(throws(Code::invalid, {"[batch_norm_backward]", "expected (2,)"},
                     [] { batch_norm_backward(ones({2, 2}), ones({2, 2}), {}, ones({3}), ones({2})); }));
}

TEST(Backward, OfNllLoss) {
  for (const DType dtype : kDTypes) {
    const double tolerance = dtype == DType::f16 || dtype == DType::bf16 ? 0.02 : 1e-6;
    const Tensor x = log_softmax(values({4, 3}, dtype), 1), target = i64({2, -100, 0, 1}),
                 weight = of(dtype, {1, 2, 0.5}, {3});
    const std::vector<double> p = elements(x);
    const double sums = -(0.5 * p[2] + p[6] + 2 * p[10]);
    const NllLoss averaged = nll_loss_with_total(x, target, weight);
    EXPECT_TRUE(close(averaged.loss, {}, {sums / 3.5}, tolerance));
    EXPECT_TRUE(close(averaged.total_weight, {}, {3.5}));
    EXPECT_TRUE(close(nll_loss_with_total(x, target, weight, -100, Reduction::sum).loss, {}, {sums}, tolerance));
    EXPECT_TRUE(close(nll_loss_with_total(x, target, {}, -100, Reduction::none).loss, {4}, {-p[2], 0, -p[6], -p[10]}));
    const Tensor of_mean =
        nll_loss_backward(of(dtype, {7}, {}), x, target, weight, -100, Reduction::mean, averaged.total_weight);
    EXPECT_TRUE(close(of_mean, {4, 3}, {0, 0, -1, 0, 0, 0, -2, 0, 0, 0, -4, 0}, tolerance));
    const Tensor of_rows =
        nll_loss_backward(of(dtype, {1, 2, 3, 4}, {4}), x, target, {}, -100, Reduction::none, averaged.total_weight);
    EXPECT_TRUE(close(of_rows, {4, 3}, {0, 0, -1, 0, 0, 0, -3, 0, 0, 0, -4, 0}));
  }
  const double never = -std::numeric_limits<double>::infinity();
  const Tensor hidden = f64({never, 0, -1, -2}, {2, 2}), first_ignored = i64({-100, 1}), none = i64({-100, -100});
  EXPECT_EQ(elements(nll_loss_with_total(hidden, first_ignored).loss), (std::vector<double>{2}));
  EXPECT_EQ(elements(nll_loss_backward(f64({1}, {}), hidden, none, {}, -100, Reduction::mean, f64({0}, {}))),
            (std::vector<double>{0, 0, 0, 0}));
  const Tensor x = zeros({1, 2});
  EXPECT_TRUE(throws(Code::index_error, {}, [&] { return nll_loss_with_total(x, i64({2})).loss.item<float>(); }));
  EXPECT_TRUE(throws(Code::invalid, {"[nll_loss_with_total]", "(n, c)"}, [&] { nll_loss_with_total(x, i64({0, 1})); }));
  EXPECT_TRUE(
      throws(Code::invalid, {"batchmean"}, [&] { nll_loss_with_total(x, i64({0}), {}, -100, Reduction::batchmean); }));
  EXPECT_TRUE(throws(Code::invalid, {"weight is (3,)"}, [&] { nll_loss_with_total(x, i64({0}), ones({3})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[nll_loss_backward]", "total_weight (2,)"},
                     [&] { nll_loss_backward(ones({}), x, i64({0}), {}, -100, Reduction::mean, ones({2})); }));
}

TEST(Backward, OfAttention) {
  const double never = -std::numeric_limits<double>::infinity();
  for (const DType dtype : kDTypes) {
    const double tolerance = dtype == DType::f16 || dtype == DType::bf16 ? 0.03 : 1e-5;
    const Tensor query = values({2, 5, 8}, dtype), key = values({2, 7, 8}, dtype, 0.1),
                 value = values({2, 7, 3}, dtype, 0.3);
    const Tensor grad = values({2, 5, 3}, dtype, 0.2);
    const Tensor hidden = reshape(of(DType::boolean, {0, 1, 0, 0, 1, 0, 0}, {7}), {1, 7});
    const Tensor mask = where(hidden, never, zeros({5, 7}, dtype));
    for (const bool is_causal : {false, true}) {
      const Tensor added = is_causal ? Tensor() : mask;
      const auto f = [&](const std::vector<Tensor>& in) {
        return scaled_dot_product_attention(in[0], in[1], in[2], added, 0, is_causal, 0.4);
      };
      const Attention all = attention_with_lse(query, key, value, added, is_causal, 0.4);
      EXPECT_TRUE(alike({elements(all.out)}, {elements(f({query, key, value}))}, tolerance)) << dtype;
      EXPECT_EQ(all.lse.shape(), Shape({2, 5}));
      EXPECT_EQ(all.lse.dtype(), dtype == DType::f64 ? DType::f64 : DType::f32);
      const AttentionGradients g = attention_backward(grad, query, key, value, added, all.out, all.lse, is_causal, 0.4);
      EXPECT_TRUE(alike({elements(g.query), elements(g.key), elements(g.value)},
                        norm_gradients(f, {query, key, value}, grad), tolerance))
          << dtype << is_causal;
    }
  }
  const Tensor x = ones({1, 2}), none = zeros({0, 2}), narrow = zeros({2, 0});
  EXPECT_EQ(elements(attention_with_lse(narrow, narrow, ones({2, 2})).out), (std::vector<double>{1, 1, 1, 1}));
  EXPECT_EQ(elements(attention_with_lse(x, none, none).lse), (std::vector<double>{never}));
  EXPECT_EQ(elements(attention_with_lse(x, none, none).out), (std::vector<double>{0, 0}));
  EXPECT_TRUE(
      throws(Code::invalid, {"[attention_with_lse]", "(.., s, v)"}, [&] { attention_with_lse(x, ones({3, 4}), x); }));
  EXPECT_TRUE(throws(Code::invalid, {"is_causal excludes mask"}, [&] { attention_with_lse(x, x, x, ones({1, 1}), true); }));
  EXPECT_TRUE(throws(Code::invalid, {"[attention_backward]", "lse (2,)"},
                     [&] { attention_backward(x, x, x, x, {}, x, ones({2})); }));
}

// The given statistics count, and a weight may have another dtype.
TEST(Backward, OfNormsWithOtherStatistics) {
  const Tensor x = f64({1, 2, 3, 4}, {2, 2}), grad = f64({1, 0, 0, 1}, {2, 2});
  const NormGradients g = batch_norm_backward(grad, x, {}, f64({0, 0}), f64({1, 1}), 0);
  EXPECT_EQ(listed(g), (std::vector<std::vector<double>>{{0, -4.5, -2, -7.5}, {1, 4}, {1, 1}}));
  const Tensor half = cast(x, DType::bf16), weight = ones({2});
  const RowNorm rows = layer_norm_with_statistics(half, {2}, weight, weight);
  const NormGradients mixed = layer_norm_backward(cast(grad, DType::bf16), half, {2}, weight, rows.mean, rows.rstd);
  EXPECT_EQ(mixed.weight.dtype(), DType::f32);
  EXPECT_EQ(mixed.x.dtype(), DType::bf16);
  EXPECT_EQ(layer_norm_backward(half, half, {2}, {}, rows.mean, rows.rstd).bias.dtype(), DType::bf16);
  EXPECT_EQ(batch_norm_backward(half, half, {}, weight, weight).weight.dtype(), DType::bf16);
}

TEST(Backward, KeepsDtypesUnderAutocast) {
  const Tensor x = values({1, 2, 9}, DType::f32), weight = values({3, 2, 4}, DType::f32);
  const Tensor grad = values({1, 3, 6}, DType::f32), plain = convolution_input_backward(grad, weight, x.shape());
  const Tensor rows = values({2, 3}, DType::f32), out = attention_with_lse(rows, rows, rows).out;
  const Autocast in_bf16(DType::bf16);
  EXPECT_EQ(elements(convolution_input_backward(grad, weight, x.shape())), elements(plain));
  EXPECT_EQ(convolution_weight_backward(grad, x, weight.shape()).dtype(), DType::f32);
  EXPECT_EQ(elements(attention_with_lse(rows, rows, rows).out), elements(out));
}

TEST(Backward, RefusesOperandsThatDoNotFit) {
  EXPECT_TRUE(throws(Code::invalid, {"[relu_backward]", "expected one shape"}, [] { relu_backward(ones({2}), ones({3})); }));
  EXPECT_TRUE(
      throws(Code::invalid, {"[silu_backward]", "share a dtype"}, [] { silu_backward(ones({2}), ones({2}, DType::f64)); }));
  EXPECT_TRUE(throws(Code::invalid, {"[tanh_backward]", "floating"},
                     [] { tanh_backward(ones({2}, DType::i64), ones({2}, DType::i64)); }));
  EXPECT_TRUE(throws(Code::invalid, {"[softmax_backward]"}, [] { softmax_backward(ones({2}), ones({2}), 3); }));
  EXPECT_TRUE(throws(Code::invalid, {"[gelu_backward]", "undefined"}, [] { gelu_backward({}, ones({2})); }));
}

}  // namespace
}  // namespace plugrad::test
