#include <core/io/onnx/ops/tables.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/indexing.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/selection.hpp>
#include <plugrad/ops/views.hpp>

namespace plugrad::io::onnx {
namespace {

// The negative log-likelihood of targets, from logarithms (batch, classes, ..).
Tensor negative_likelihood(const Call& c, const Tensor& logarithms) {
  Tensor target = cast(c.tensor(1), DType::i64), ignored;
  if (c.has_attribute("ignore_index")) {
    ignored = eq(target, c.integer("ignore_index", 0));
    target = where(ignored, zeros_like(target), target);
  }
  Tensor loss = neg(squeeze(gather(logarithms, 1, unsqueeze(target, 1)), {1}));
  Tensor weight =
      c.has(2) ? reshape(index_select(c.tensor(2), 0, reshape(target, {target.count()})), target.shape()) : ones_like(loss);
  if (ignored.defined()) weight = where(ignored, zeros_like(weight), weight);
  loss = mul(loss, weight);
  const std::string reduction = c.text("reduction", "mean");
  if (reduction == "none") return loss;
  return reduction == "sum" ? sum(loss) : div(sum(loss), sum(weight));
}

Values cross_entropies(Call& c) {
  const Tensor logarithms = log_softmax(c.tensor(0), 1);
  Values results{c.like(negative_likelihood(c, logarithms))};
  if (c.wants(1)) results.push_back(c.like(logarithms));
  return results;
}

constexpr Operator kLosses[] = {
    {"NegativeLogLikelihoodLoss", [](Call& c) { return c.like(negative_likelihood(c, c.tensor(0))); }},
    {"SoftmaxCrossEntropyLoss", cross_entropies},
};
}  // namespace

std::span<const Operator> loss_operators() { return kLosses; }

}  // namespace plugrad::io::onnx
