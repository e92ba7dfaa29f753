// Gradients of further activations, losses and layers.
#include <tests/core/gradient_rows.hpp>

namespace plugrad::test {
namespace {
constexpr double kLow = -2, kHigh = 2;
using Rows = std::vector<GradientRow>;
using I = const Inputs&;

Tensor drawn(I x, Tensor (*f)(const Tensor& x)) {
  manual_seed(11);
  return exp(f(x[0]) * 0.5);
}

// A weight (3, 32) of 4 bits, and of 8 bits with symmetric codes.
Quantized weight_of_few_bits(bool symmetric) {
  const NoGrad constant;
  const Tensor weight = sin(reshape(arange(0, 96, 1), {3, 32}));
  return quantize(weight, symmetric ? 8 : 4, symmetric ? 32 : 16, symmetric, DType::f32);
}

Rows quantized_rows() {
  return {
      {"quantized_matmul",
       "FourBits",
       {{2, 32}},
       kLow,
       kHigh,
       [](I x) {
         const Quantized weight = weight_of_few_bits(false);
         return exp(quantized_matmul(x[0], weight.codes, weight.scales) * 0.25);
       }},
      {"quantized_matmul",
       "Vector",
       {{32}},
       kLow,
       kHigh,
       [](I x) {
         const Quantized weight = weight_of_few_bits(true);
         return exp(quantized_matmul(x[0], weight.codes, weight.scales) * 0.25);
       }},
      {"dequantize",
       "Scales",
       {{3, 2, 2}},
       kLow,
       kHigh,
       [](I x) { return dequantize(weight_of_few_bits(false).codes, cast(x[0], DType::f32), 4, DType::f64) * 0.25; }},
  };
}

Rows further_activation_rows() {
  return {
      {"relu6", "Plain", {{2, 3}}, kLow, kHigh, [](I x) { return exp(relu6(x[0])); }, {0}},
      {"hardsigmoid", "Plain", {{2, 3}}, -4.25, 4.5, [](I x) { return exp(hardsigmoid(x[0])); }, {-3, 3}},
      {"hardswish", "Plain", {{2, 3}}, -4.25, 4.5, [](I x) { return exp(hardswish(x[0])); }, {-3, 3}},
      {"threshold", "Plain", {{2, 3}}, kLow, kHigh, [](I x) { return exp(threshold(x[0], 0.5, 3)); }, {0.5}},
      {"softshrink", "Plain", {{2, 3}}, kLow, kHigh, [](I x) { return exp(softshrink(x[0])); }, {-0.5, 0.5}},
      {"hardshrink", "Plain", {{2, 3}}, kLow, kHigh, [](I x) { return exp(hardshrink(x[0])); }, {-0.5, 0.5}},
      {"prelu", "Channels", {{2, 3, 2}, {3}}, -1.5, 2, [](I x) { return exp(prelu(x[0], x[1]) * 0.5); }, {0}},
      {"rrelu", "Plain", {{2, 3}}, kLow, kHigh, [](I x) { return exp(rrelu(x[0])); }, {0}},
      {"rrelu",
       "Training",
       {{2, 3}},
       kLow,
       kHigh,
       [](I x) { return drawn(x, [](const Tensor& a) { return rrelu(a, 0.125, 0.5, true); }); },
       {0}},
      {"mish", "Plain", {{2, 3}}, kLow, kHigh, [](I x) { return exp(mish(x[0])); }},
      {"selu", "Plain", {{2, 3}}, kLow, kHigh, [](I x) { return exp(selu(x[0])); }, {0}},
      {"celu", "Plain", {{2, 3}}, kLow, kHigh, [](I x) { return exp(celu(x[0], 1.5)); }, {0}},
      {"softsign", "Plain", {{2, 3}}, kLow, kHigh, [](I x) { return exp(softsign(x[0])); }, {0}},
      {"tanhshrink", "Plain", {{2, 3}}, kLow, kHigh, [](I x) { return exp(tanhshrink(x[0])); }},
      {"logsigmoid", "Plain", {{2, 3}}, kLow, kHigh, [](I x) { return exp(logsigmoid(x[0])); }},
      {"softmin", "First", {{2, 3}}, kLow, kHigh, [](I x) { return exp(softmin(x[0], 0)); }},
      {"glu", "Plain", {{2, 4}}, kLow, kHigh, [](I x) { return exp(glu(x[0])); }},
      {"gumbel_softmax",
       "Soft",
       {{2, 3}},
       kLow,
       kHigh,
       [](I x) { return drawn(x, [](const Tensor& a) { return gumbel_softmax(a, 2); }); }},
  };
}

Tensor signs() { return f64({1, -1, 1, -1, -1, 1}, {2, 3}); }
Tensor first_signs() { return f64({1, -1}); }

Rows further_loss_rows() {
  return {
      {"smooth_l1_loss",
       "Near",
       {{2, 3}, {2, 3}},
       kLow,
       kHigh,
       [](I x) { return smooth_l1_loss(x[0], x[1], Reduction::none, 10); }},
      {"binary_cross_entropy",
       "Weight",
       {{2, 3}, {2, 3}, {3}},
       0.2,
       0.8,
       [](I x) { return binary_cross_entropy(x[0], x[1], x[2]); }},
      {"poisson_nll_loss",
       "Full",
       {{2, 3}, {2, 3}},
       1.5,
       2.5,
       [](I x) { return poisson_nll_loss(x[0], x[1], false, true); }},
      {"gaussian_nll_loss",
       "Full",
       {{2, 3}, {2, 3}, {2, 1}},
       0.5,
       2.5,
       [](I x) { return gaussian_nll_loss(x[0], x[1], x[2], true); }},
      {"kl_div", "Batch", {{2, 3}, {2, 3}}, 0.5, 2.5, [](I x) { return kl_div(x[0], x[1], Reduction::batchmean); }},
      {"hinge_embedding_loss",
       "Plain",
       {{2, 3}},
       kLow,
       kHigh,
       [](I x) { return hinge_embedding_loss(x[0], signs(), 0.75) * sum(x[0]); },
       {0.75}},
      {"margin_ranking_loss",
       "Plain",
       {{2, 3}, {2, 3}},
       kLow,
       kHigh,
       [](I x) { return margin_ranking_loss(x[0], x[1], signs(), 5) * sum(x[0]); }},
      {"cosine_embedding_loss",
       "Plain",
       {{2, 3}, {2, 3}},
       kLow,
       kHigh,
       [](I x) { return cosine_embedding_loss(x[0], x[1], first_signs(), -1); }},
      {"triplet_margin_loss",
       "Swap",
       {{2, 3}, {2, 3}, {2, 3}},
       kLow,
       kHigh,
       [](I x) { return triplet_margin_loss(x[0], x[1] + 4, x[2] - 5, 8, 2, 1e-6, true); }},
      {"multi_margin_loss",
       "Squares",
       {{2, 3}, {3}},
       0.5,
       2,
       [](I x) {
         return multi_margin_loss(x[0], i64({2, 0}), 2, 4, x[1]);
       }},
      {"multilabel_margin_loss",
       "Plain",
       {{2, 3}},
       -0.25,
       0.25,
       [](I x) {
         return multilabel_margin_loss(x[0], i64({2, -1, 0, 1, 0, -1}, {2, 3})) * sum(x[0]);
       }},
      {"soft_margin_loss", "Plain", {{2, 3}}, kLow, kHigh, [](I x) { return soft_margin_loss(x[0], signs()); }},
      {"multilabel_soft_margin_loss",
       "Weight",
       {{2, 3}, {2, 3}, {3}},
       kLow,
       kHigh,
       [](I x) { return multilabel_soft_margin_loss(x[0], x[1], x[2]); }},
  };
}

Rows further_layer_rows() {
  return {
      {"instance_norm",
       "Plain",
       {{2, 2, 3}, {2}, {2}},
       kLow,
       kHigh,
       [](I x) { return instance_norm(x[0], {}, {}, x[1], x[2], true, 0.1, 0.5); }},
      {"local_response_norm", "Plain", {{1, 3, 2}}, kLow, kHigh, [](I x) { return local_response_norm(x[0], 2, 0.5); }},
      {"embedding",
       "Padding",
       {{4, 2}},
       kLow,
       kHigh,
       [](I x) {
         return exp(embedding(cat({x[0], zeros({1, 2}, DType::f64)}), i64({3, 0, 4, 3}), 4));
       }},
      {"embedding_bag",
       "Weights",
       {{4, 2}, {2, 2}},
       kLow,
       kHigh,
       [](I x) {
         return embedding_bag(x[0], i64({3, 0, 1, 3}, {2, 2}), {}, BagMode::sum, x[1]);
       }},
      {"embedding_bag",
       "Max",
       {{4, 2}},
       kLow,
       kHigh,
       [](I x) {
         return exp(embedding_bag(x[0], i64({3, 0, 1, 3}), i64({0, 3}), BagMode::max));
       },
       {},
       true},
      {"dropout1d",
       "Half",
       {{2, 3, 2}},
       kLow,
       kHigh,
       [](I x) { return drawn(x, [](const Tensor& a) { return dropout1d(a); }); }},
      {"dropout2d",
       "Half",
       {{1, 3, 2, 2}},
       kLow,
       kHigh,
       [](I x) { return drawn(x, [](const Tensor& a) { return dropout2d(a); }); }},
      {"dropout3d",
       "Half",
       {{3, 2, 1, 2}},
       kLow,
       kHigh,
       [](I x) { return drawn(x, [](const Tensor& a) { return dropout3d(a); }); }},
      {"alpha_dropout",
       "Half",
       {{2, 3}},
       kLow,
       kHigh,
       [](I x) { return drawn(x, [](const Tensor& a) { return alpha_dropout(a, 0.5, true); }); }},
      {"feature_alpha_dropout",
       "Half",
       {{2, 3, 2}},
       kLow,
       kHigh,
       [](I x) { return drawn(x, [](const Tensor& a) { return feature_alpha_dropout(a, 0.5, true); }); }},
  };
}
}  // namespace

std::vector<GradientRow> network_rows() {
  Rows all = further_activation_rows();
  for (const Rows& more : {further_loss_rows(), further_layer_rows(), quantized_rows()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace plugrad::test
