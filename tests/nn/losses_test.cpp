// Loss modules pass all their options to the functions.
#include <plugrad/plugrad.hpp>
#include <tests/core/expect.hpp>

namespace plugrad {
namespace {

using test::elements;
constexpr Reduction kSum = Reduction::sum;

void expect_same(const char* name, const Tensor& loss, const Tensor& expected, const Tensor& plain) {
  EXPECT_EQ(elements(loss), elements(expected)) << name;
  EXPECT_NE(elements(loss), elements(plain)) << name << ": the options have no effect";
}

TEST(Losses, PassOnTheirOptions) {
  const Tensor x = test::f64({0.3, -1.5, 2.25, 0.8, -0.1, 3.5}, {2, 3}), y = test::f64({1, 0.5, -1, 0.2, 2, -3}, {2, 3});
  const Tensor p = sigmoid(x), q = sigmoid(y), w = test::f64({0.5, 2, 3}), log_p = log_softmax(x);
  const Tensor classes = test::i64({2, 0});
  expect_same("mse", nn::MSELoss{kSum}(x, y), mse_loss(x, y, kSum), mse_loss(x, y));
  expect_same("l1", nn::L1Loss{kSum}(x, y), l1_loss(x, y, kSum), l1_loss(x, y));
  expect_same("huber", nn::HuberLoss{.delta = 0.5}(x, y), huber_loss(x, y, Reduction::mean, 0.5), huber_loss(x, y));
  expect_same("smooth l1", nn::SmoothL1Loss{kSum, 0.5}(x, y), smooth_l1_loss(x, y, kSum, 0.5), smooth_l1_loss(x, y, kSum));
  expect_same("cross entropy", nn::CrossEntropyLoss{w, 0, kSum, 0.1}(x, classes), cross_entropy(x, classes, kSum, w, 0, 0.1),
              cross_entropy(x, classes, kSum, w, 0));
  expect_same("nll", nn::NLLLoss{w, 0, kSum}(log_p, classes), nll_loss(log_p, classes, w, 0, kSum),
              nll_loss(log_p, classes));
  expect_same("bce", nn::BCELoss{w, kSum}(p, q), binary_cross_entropy(p, q, w, kSum), binary_cross_entropy(p, q, {}, kSum));
  expect_same("bce with logits", nn::BCEWithLogitsLoss{.pos_weight = w}(x, q), binary_cross_entropy_with_logits(x, q, {}, w),
              binary_cross_entropy_with_logits(x, q));
  expect_same("kl", nn::KLDivLoss{Reduction::batchmean, true}(log_p, y), kl_div(log_p, y, Reduction::batchmean, true),
              kl_div(log_p, y, Reduction::mean, true));
  expect_same("poisson", nn::PoissonNLLLoss{false, true, 0.5, kSum}(p, exp(y)),
              poisson_nll_loss(p, exp(y), false, true, 0.5, kSum), poisson_nll_loss(p, exp(y)));
  expect_same("gaussian", nn::GaussianNLLLoss{true, 0.6, kSum}(x, y, p), gaussian_nll_loss(x, y, p, true, 0.6, kSum),
              gaussian_nll_loss(x, y, p, true, 1e-6, kSum));
}

TEST(Losses, WithMarginsPassOnTheirOptions) {
  const Tensor x = test::f64({0.3, -1.5, 2.25, 0.8, -0.1, 3.5}, {2, 3}), y = test::f64({1, 0.5, -1, 0.2, 2, -3}, {2, 3});
  const Tensor w = test::f64({0.5, 2, 3}), signs = test::f64({1, -1}), all = test::f64({1, -1, 1, -1, 1, -1}, {2, 3});
  const Tensor classes = test::i64({2, 0}), several = test::i64({2, 0, -1, 1, -1, -1}, {2, 3}), bits = (all + 1) / 2;
  expect_same("hinge", nn::HingeEmbeddingLoss{2, kSum}(x, all), hinge_embedding_loss(x, all, 2, kSum),
              hinge_embedding_loss(x, all, 1, kSum));
  expect_same("ranking", nn::MarginRankingLoss{0.5, kSum}(x, y, all), margin_ranking_loss(x, y, all, 0.5, kSum),
              margin_ranking_loss(x, y, all, 0, kSum));
  expect_same("cosine", nn::CosineEmbeddingLoss{-0.9, kSum}(x, y, signs), cosine_embedding_loss(x, y, signs, -0.9, kSum),
              cosine_embedding_loss(x, y, signs, 0, kSum));
  expect_same("triplet", nn::TripletMarginLoss{9, 1, 0.1, true, kSum}(x, y, x * 2),
              triplet_margin_loss(x, y, x * 2, 9, 1, 0.1, true, kSum), triplet_margin_loss(x, y, x * 2));
  expect_same("multi margin", nn::MultiMarginLoss{2, 0.5, w, kSum}(x, classes),
              multi_margin_loss(x, classes, 2, 0.5, w, kSum), multi_margin_loss(x, classes, 2, 0.5, {}, kSum));
  expect_same("several labels", nn::MultiLabelMarginLoss{kSum}(x, several), multilabel_margin_loss(x, several, kSum),
              multilabel_margin_loss(x, several));
  expect_same("soft", nn::SoftMarginLoss{kSum}(x, all), soft_margin_loss(x, all, kSum), soft_margin_loss(x, all));
  expect_same("soft, several", nn::MultiLabelSoftMarginLoss{w, kSum}(x, bits), multilabel_soft_margin_loss(x, bits, w, kSum),
              multilabel_soft_margin_loss(x, bits, {}, kSum));
}

}  // namespace
}  // namespace plugrad
