#include <plugrad/ops/margin_losses.hpp>

#include <core/ops/argument.hpp>
#include <core/ops/autocast_rules.hpp>
#include <core/ops/cross_entropy.hpp>
#include <plugrad/ops/distances.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/indexing.hpp>
#include <plugrad/ops/scans.hpp>
#include <plugrad/ops/smooth.hpp>
#include <plugrad/ops/views.hpp>

#include <string>

namespace plugrad {
namespace {
void require_same_shape(const char* name, const Tensor& x, const Tensor& target) {
  require_floating(name, x);
  require_defined(target, name);
  if (x.shape() != target.shape())
    refuse(name, "x is " + x.shape().text() + " and target " + target.shape().text() + ": their shapes must be equal");
}
}  // namespace

Tensor hinge_embedding_loss(const Tensor& x, const Tensor& target, double margin, Reduction reduction) {
  if (autocasting()) [[unlikely]]
    return in_f32(hinge_embedding_loss, x, target, margin, reduction);
  if (are_halves(x, target)) return rounded_once(x, hinge_embedding_loss, x, target, margin, reduction);
  require_same_shape("hinge_embedding_loss", x, target);
  const Tensor apart = where(ne(target, 1), relu(sub(margin, x)), 0), near = where(ne(target, -1), x, 0);
  return reduced(add(apart, near), reduction);
}

Tensor margin_ranking_loss(const Tensor& x1, const Tensor& x2, const Tensor& target, double margin, Reduction reduction) {
  if (autocasting()) [[unlikely]]
    return in_f32(margin_ranking_loss, x1, x2, target, margin, reduction);
  if (are_halves(x1, x2, target)) return rounded_once(x1, margin_ranking_loss, x1, x2, target, margin, reduction);
  require_floating("margin_ranking_loss", x1);
  require_floating("margin_ranking_loss", x2);
  require_defined(target, "margin_ranking_loss");
  return reduced(relu(add(mul(neg(target), sub(x1, x2)), margin)), reduction);
}

namespace {
Tensor product_of_last(const Tensor& a, const Tensor& b) { return sum(mul(a, b), {-1}); }
}  // namespace

Tensor cosine_embedding_loss(const Tensor& x1, const Tensor& x2, const Tensor& target, double margin, Reduction reduction) {
  if (autocasting()) [[unlikely]]
    return in_f32(cosine_embedding_loss, x1, x2, target, margin, reduction);
  if (are_halves(x1, x2)) return rounded_once(x1, cosine_embedding_loss, x1, x2, target, margin, reduction);
  constexpr const char* kName = "cosine_embedding_loss";
  require_same_shape(kName, x1, x2);
  require_defined(target, kName);
  if (x1.rank() < 1 || x1.rank() > 2 || target.rank() != x1.rank() - 1 || (target.rank() && target.size(0) != x1.size(0)))
    refuse(kName, "x1 is " + x1.shape().text() + " and target " + target.shape().text() + ": expected (n, d) and (n,)");
  const Tensor a = at_least_f32(x1), b = at_least_f32(x2);
  const Tensor squares = mul(add(product_of_last(a, a), 1e-12), add(product_of_last(b, b), 1e-12));
  const Tensor cosine = cast(div(product_of_last(a, b), sqrt(squares)), x1.dtype());
  const Tensor near = where(eq(target, 1), sub(1, cosine), 0);
  return reduced(add(near, where(eq(target, -1), relu(sub(cosine, margin)), 0)), reduction);
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin, double p,
                           double eps, bool swap, Reduction reduction) {
  if (autocasting()) [[unlikely]]
    return in_f32(triplet_margin_loss, anchor, positive, negative, margin, p, eps, swap, reduction);
  if (are_halves(anchor, positive, negative))
    return rounded_once(anchor, triplet_margin_loss, anchor, positive, negative, margin, p, eps, swap, reduction);
  const Tensor near = pairwise_distance(anchor, positive, p, eps);
  Tensor far = pairwise_distance(anchor, negative, p, eps);
  if (swap) far = minimum(far, pairwise_distance(positive, negative, p, eps));
  return reduced(relu(add(sub(near, far), margin)), reduction);
}

// --- Margins between classes.

namespace {
// x as rows (n, c), and whether it had this shape.
Tensor rows_of(const char* name, const Tensor& x) {
  require_floating(name, x);
  if (x.rank() < 1 || x.rank() > 2 || !x.size(-1))
    refuse(name, "x has shape " + x.shape().text() + ": expected (n, c) or (c), with c at least 1");
  return x.rank() == 2 ? x : unsqueeze(x, 0);
}
Tensor reduced_rows(const Tensor& losses, const Tensor& x, Reduction reduction) {
  return reduced(x.rank() == 2 ? losses : squeeze(losses, {0}), reduction);
}
}  // namespace

Tensor multi_margin_loss(const Tensor& x, const Tensor& target, int64_t p, double margin, const Tensor& weight,
                         Reduction reduction) {
  if (autocasting()) [[unlikely]]
    return in_f32(multi_margin_loss, x, target, p, margin, weight, reduction);
  if (are_halves(x)) return rounded_once(x, multi_margin_loss, x, target, p, margin, weight, reduction);
  constexpr const char* kName = "multi_margin_loss";
  const Tensor rows = rows_of(kName, x);
  require_integer(kName, target, "target");
  if (target.rank() != x.rank() - 1 || target.count() != rows.size(0))
    refuse(kName, "x is " + x.shape().text() + " and target " + target.shape().text() + ": expected (n, c) and (n,)");
  if (p != 1 && p != 2) refuse(kName, "p is " + std::to_string(p) + ": expected 1 or 2");
  const Tensor index = reshape(cast(target, DType::i64), {rows.size(0), 1});
  Tensor parts = relu(add(sub(rows, gather(rows, 1, index)), margin));
  if (p == 2) parts = mul(parts, parts);
  if (weight.defined()) parts = mul(parts, gather(expand(weight, rows.shape()), 1, index));
  const Tensor classes = arange(0, rows.size(1), 1, DType::i64, x.device());
  const Tensor losses = div(sum(where(eq(classes, index), 0, parts), {1}), static_cast<double>(rows.size(1)));
  return reduced_rows(losses, x, reduction);
}

Tensor multilabel_margin_loss(const Tensor& x, const Tensor& target, Reduction reduction) {
  if (autocasting()) [[unlikely]]
    return in_f32(multilabel_margin_loss, x, target, reduction);
  if (are_halves(x)) return rounded_once(x, multilabel_margin_loss, x, target, reduction);
  constexpr const char* kName = "multilabel_margin_loss";
  require_same_shape(kName, x, target);
  require_integer(kName, target, "target");
  const Tensor rows = rows_of(kName, x), lists = cast(reshape(target, rows.shape()), DType::i64);
  // 1 for the targets before the first -1.
  const Tensor counts = cumprod(cast(ge(lists, 0), DType::i64), 1), counted = ne(counts, 0);
  const Tensor index = where(counted, lists, 0);
  const Tensor is_target = gt(scatter_add(zeros_like(lists), 1, index, counts), 0);
  // (n, target, class)
  const Tensor margins = relu(add(sub(unsqueeze(rows, 1), unsqueeze(gather(rows, 1, index), 2)), 1));
  const Tensor chosen = where(unsqueeze(counted, 2), where(unsqueeze(is_target, 1), 0, margins), 0);
  return reduced_rows(div(sum(chosen, {1, 2}), static_cast<double>(rows.size(1))), x, reduction);
}

// --- Smooth margins.

Tensor soft_margin_loss(const Tensor& x, const Tensor& target, Reduction reduction) {
  if (autocasting()) [[unlikely]]
    return in_f32(soft_margin_loss, x, target, reduction);
  if (are_halves(x, target)) return rounded_once(x, soft_margin_loss, x, target, reduction);
  require_same_shape("soft_margin_loss", x, target);
  return reduced(neg(logsigmoid(mul(x, target))), reduction);
}

Tensor multilabel_soft_margin_loss(const Tensor& x, const Tensor& target, const Tensor& weight, Reduction reduction) {
  if (autocasting()) [[unlikely]]
    return in_f32(multilabel_soft_margin_loss, x, target, weight, reduction);
  if (are_halves(x, target)) return rounded_once(x, multilabel_soft_margin_loss, x, target, weight, reduction);
  constexpr const char* kName = "multilabel_soft_margin_loss";
  require_same_shape(kName, x, target);
  if (!x.rank()) refuse(kName, "x has rank 0: expected an axis of classes");
  Tensor losses = neg(add(mul(target, logsigmoid(x)), mul(sub(1, target), logsigmoid(neg(x)))));
  if (weight.defined()) losses = mul(losses, weight);
  return reduced(mean(losses, {-1}), reduction);
}

}  // namespace plugrad
