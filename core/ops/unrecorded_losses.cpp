// The negative log likelihood and its gradient without a graph, for libraries with an autograd of their own.
#include <core/ops/backward.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/gradients.hpp>
#include <plugrad/ops/indexing.hpp>
#include <plugrad/ops/scatter.hpp>
#include <plugrad/ops/selection.hpp>
#include <plugrad/ops/views.hpp>

namespace plugrad {
namespace {
// Which rows are ignored, and the classes and weights of rows, 0 for ignored rows.
struct Rows {
  Tensor ignored, classes, weights;
};

Rows rows_of(const char* name, const Tensor& x, const Tensor& target, const Tensor& weight, int64_t ignore_index,
             Reduction reduction) {
  require_floating(name, x);
  if (reduction == Reduction::batchmean) refuse(name, "reduction is batchmean: expected none, mean or sum");
  require_dtype(name, target, DType::i64, "target");
  if (x.rank() != 2 || target.shape() != Shape{x.size(0)} || &device_of(x) != &device_of(target))
    refuse(name,
           "x is " + x.shape().text() + " and target " + target.shape().text() + ": expected (n, c) and (n,) on one device");
  if (weight.defined()) {
    require_gradient(name, x, weight);
    if (weight.shape() != Shape{x.size(1)})
      refuse(name, "weight is " + weight.shape().text() + ": expected (" + std::to_string(x.size(1)) + ",)");
  }
  const Tensor ignored = eq(target, ignore_index), classes = where(ignored, 0, target);
  const Tensor ones_or_weights = weight.defined() ? index_select(at_least_f32(weight), 0, classes)
                                                  : ones({x.size(0)}, accumulator_of(x.dtype()), x.device());
  return {ignored, unsqueeze(classes, 1), where(ignored, 0, ones_or_weights)};
}
}  // namespace

NllLoss nll_loss_with_total(const Tensor& x, const Tensor& target, const Tensor& weight, int64_t ignore_index,
                            Reduction reduction) {
  const WithoutGraph plainly;
  const Rows rows = rows_of("nll_loss_with_total", x, target, weight, ignore_index, reduction);
  const Tensor picked = at_least_f32(squeeze(gather(x, 1, rows.classes), {1}));
  const Tensor losses = where(rows.ignored, 0, neg(mul(picked, rows.weights)));
  const Tensor total = sum(rows.weights);
  if (reduction == Reduction::none) return {cast(losses, x.dtype()), total};
  const Tensor all = sum(losses);
  return {cast(reduction == Reduction::mean ? div(all, total) : all, x.dtype()), total};
}

Tensor nll_loss_backward(const Tensor& grad, const Tensor& x, const Tensor& target, const Tensor& weight,
                         int64_t ignore_index, Reduction reduction, const Tensor& total_weight) {
  constexpr const char* kName = "nll_loss_backward";
  require_gradient(kName, grad, x);
  require_floating(kName, total_weight);
  const WithoutGraph plainly;
  const Rows rows = rows_of(kName, x, target, weight, ignore_index, reduction);
  const bool fits = reduction == Reduction::none ? grad.shape() == target.shape() : grad.count() == 1;
  if (!fits || total_weight.count() != 1)
    refuse(kName, "grad is " + grad.shape().text() + " and total_weight " + total_weight.shape().text() +
                      ": expected the shapes of the loss and of its total weight");
  Tensor share = reduction == Reduction::none ? at_least_f32(grad) : reshape(at_least_f32(grad), {1});
  if (reduction == Reduction::mean) share = div(share, reshape(cast(total_weight, share.dtype()), {1}));
  const Tensor slopes = unsqueeze(cast(where(rows.ignored, 0, neg(mul(rows.weights, share))), x.dtype()), 1);
  return scatter_add(zeros(x.shape(), x.dtype(), x.device()), 1, rows.classes, slopes);
}

}  // namespace plugrad
