// Further activations, losses and layers: refused operands, random draws, and running statistics. tests/torch compares
// results and gradients with PyTorch's.
#include <tests/core/expect.hpp>

#include <algorithm>
#include <cmath>

namespace plugrad::test {
namespace {

TEST(Networks, HalvesAreRoundedOnce) {
  const std::vector<double> values = spread(24, -4, 4);
  const Tensor half = of(DType::bf16, values, {24}), wide = cast(half, DType::f64);
  for (Tensor (*f)(const Tensor&) : {hardsigmoid, hardswish, mish, selu, softsign, tanhshrink})
    EXPECT_TRUE(close(f(half), {24}, elements(cast(f(wide), DType::bf16)), 0.004));
  EXPECT_EQ(gumbel_softmax(half).dtype(), DType::bf16);
}

TEST(Networks, GumbelSoftmaxDraws) {
  manual_seed(5);
  const Tensor x = f64({0, std::log(3.0)}), many = expand(x, {4000, 2});
  const Tensor hard = gumbel_softmax(many, 0.5, true);
  EXPECT_TRUE(close(sum(hard, {1}), {4000}, std::vector<double>(4000, 1), 1e-12));
  EXPECT_TRUE(close(mean(hard, {0}), {2}, {0.25, 0.75}, 0.03));
  const Tensor leaf = f64({1, 2, 3}).requires_grad_();
  manual_seed(7);
  const Tensor soft_gradient = grad({sum(gumbel_softmax(leaf) * f64({1, 2, 4}))}, {leaf})[0];
  manual_seed(7);
  EXPECT_TRUE(close(grad({sum(gumbel_softmax(leaf, 1, true) * f64({1, 2, 4}))}, {leaf})[0], {3}, elements(soft_gradient)));
}

// Returns whether each group of `inner` elements is dropped or kept as a whole.
bool whole_groups(const Tensor& x, size_t inner, double kept) {
  const std::vector<double> all = elements(x);
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i] != all[i / inner * inner] || (all[i] != 0 && all[i] != kept)) return false;
  return true;
}

TEST(Networks, ChannelsAreDroppedAsAWhole) {
  manual_seed(3);
  EXPECT_TRUE(whole_groups(dropout1d(ones({20, 5, 4}), 0.5), 4, 2));
  EXPECT_TRUE(whole_groups(dropout1d(ones({100, 4}), 0.5), 4, 2));
  EXPECT_TRUE(whole_groups(dropout2d(ones({20, 5, 2, 2}), 0.5), 4, 2));
  EXPECT_TRUE(whole_groups(dropout2d(ones({20, 5, 4}), 0.5), 4, 2));
  EXPECT_TRUE(whole_groups(dropout3d(ones({100, 1, 2, 2}), 0.5), 4, 2));
  const std::vector<double> kept = elements(mean(dropout2d(ones({100, 100, 1, 1}), 0.25)));
  EXPECT_NEAR(kept[0], 1, 0.03);
  const Tensor x = ones({2, 3, 4});
  EXPECT_TRUE(dropout1d(x, 0.5, false).is_same(x));
  EXPECT_TRUE(dropout1d(x, 0).is_same(x));
  EXPECT_TRUE(close(dropout1d(x, 1), {2, 3, 4}, std::vector<double>(24, 0)));
}

TEST(Networks, AlphaDropoutKeepsMeanAndVariance) {
  manual_seed(9);
  const Tensor x = alpha_dropout(randn({20000}), 0.3, true);
  EXPECT_NEAR(mean(x).item<double>(), 0, 0.03);
  EXPECT_NEAR(var(x).item<double>(), 1, 0.05);
  const std::vector<double> all = elements(feature_alpha_dropout(zeros({50, 4, 3}), 0.5, true));
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], all[i / 3 * 3]);
  EXPECT_EQ(std::ranges::count(elements(alpha_dropout(ones({3}), 1, true)), 0), 3);
}

TEST(Networks, InstanceNormMovesRunningStatistics) {
  const Tensor x = f64({1, 3, 2, 6, 5, 7, 0, 8}, {2, 2, 2});
  Tensor average = zeros({2}, DType::f64), variance = ones({2}, DType::f64);
  instance_norm(x, average, variance, {}, {}, true, 0.5);
  EXPECT_TRUE(close(average, {2}, {2, 2}));
  EXPECT_TRUE(close(variance, {2}, {1.5, 10.5}));
}

TEST(Networks, LossesRefuse) {
  const Tensor x = counting({2, 3}), y = counting({3, 2}), whole = i64({1, 2});
  EXPECT_TRUE(throws(Code::invalid, {"[smooth_l1_loss]", "(3, 2)"}, [&] { smooth_l1_loss(x, y); }));
  EXPECT_TRUE(throws(Code::invalid, {"[smooth_l1_loss]", "beta"}, [&] { smooth_l1_loss(x, x, Reduction::mean, -1); }));
  EXPECT_TRUE(throws(Code::invalid, {"[binary_cross_entropy]", "i64"}, [&] { binary_cross_entropy(whole, whole); }));
  EXPECT_TRUE(throws(Code::invalid, {"[poisson_nll_loss]", "(3, 2)"}, [&] { poisson_nll_loss(x, y); }));
  EXPECT_TRUE(throws(Code::invalid, {"[sub]", "(3, 2)"}, [&] { gaussian_nll_loss(x, y, x); }));
  EXPECT_TRUE(throws(Code::invalid, {"[reduction]", "kl_div"}, [&] { mse_loss(x, x, Reduction::batchmean); }));
  EXPECT_TRUE(throws(Code::invalid, {"[hinge_embedding_loss]", "(3, 2)"}, [&] { hinge_embedding_loss(x, y); }));
  EXPECT_TRUE(
      throws(Code::invalid, {"[cosine_embedding_loss]", "(3,)"}, [&] { cosine_embedding_loss(x, x, f64({1, 1, 1})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[multi_margin_loss]", "p is 3"}, [&] { multi_margin_loss(x, whole, 3); }));
  EXPECT_TRUE(throws(Code::invalid, {"[multi_margin_loss]", "(3,)"}, [&] { multi_margin_loss(x, i64({0, 1, 2})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[multilabel_margin_loss]", "(2,)"}, [&] { multilabel_margin_loss(x, whole); }));
  EXPECT_TRUE(throws(Code::invalid, {"[soft_margin_loss]", "(3, 2)"}, [&] { soft_margin_loss(x, y); }));
}

TEST(Networks, ActivationsAndLayersRefuse) {
  const Tensor x = counting({2, 3}), whole = i64({1, 2});
  EXPECT_TRUE(throws(Code::invalid, {"[prelu]", "(2,)", "(2, 3)"}, [&] { prelu(x, f64({1, 2})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[rrelu]", "above"}, [&] { rrelu(x, 2, 1); }));
  EXPECT_TRUE(throws(Code::invalid, {"[softshrink]", "lambd"}, [&] { softshrink(x, -1); }));
  EXPECT_TRUE(throws(Code::invalid, {"[celu]", "alpha"}, [&] { celu(x, 0); }));
  EXPECT_TRUE(throws(Code::invalid, {"[glu]", "odd"}, [&] { glu(x); }));
  EXPECT_TRUE(throws(Code::invalid, {"[gumbel_softmax]", "tau"}, [&] { gumbel_softmax(x, 0); }));
  EXPECT_TRUE(throws(Code::invalid, {"[mish]", "i64"}, [&] { mish(whole); }));
  EXPECT_TRUE(throws(Code::invalid, {"[dropout2d]", "rank 3 or 4"}, [&] { dropout2d(x); }));
  EXPECT_TRUE(throws(Code::invalid, {"[alpha_dropout]", "probability"}, [&] { alpha_dropout(x, 2, true); }));
  EXPECT_TRUE(throws(Code::invalid, {"[instance_norm]", "one element"}, [&] { instance_norm(x); }));
  EXPECT_TRUE(
      throws(Code::invalid, {"[local_response_norm]", "size is 0"}, [] { local_response_norm(counting({1, 2, 2}), 0); }));
  EXPECT_TRUE(throws(Code::invalid, {"[embedding]", "padding_idx is 2"}, [&] { embedding(x, whole, 2); }));
  EXPECT_TRUE(throws(Code::invalid, {"[embedding_bag]", "with offsets"}, [&] { embedding_bag(x, whole); }));
  EXPECT_TRUE(throws(Code::invalid, {"[embedding_bag]", "leave them out"},
                     [&] { embedding_bag(x, i64({0, 1}, {1, 2}), i64({0})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[embedding_bag]", "mode sum"},
                     [&] { embedding_bag(x, i64({0, 1}, {1, 2}), {}, BagMode::mean, f64({1, 2}, {1, 2})); }));
}

}  // namespace
}  // namespace plugrad::test
