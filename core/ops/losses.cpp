#include <plugrad/ops/losses.hpp>

#include <core/ops/argument.hpp>
#include <core/ops/loss.hpp>
#include <core/ops/run.hpp>
#include <plugrad/ops/activations.hpp>
#include <plugrad/ops/arrangement.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/indexing.hpp>
#include <plugrad/ops/views.hpp>

#include <limits>

namespace plugrad {

Tensor reduced(const Tensor& losses, Reduction reduction) {
  return reduction == Reduction::none ? losses : reduction == Reduction::sum ? sum(losses) : mean(losses);
}

// --- Losses of numbers.

namespace {
void require_alike(const char* name, const Tensor& x, const Tensor& target) {
  require_floating(name, x);
  require_defined(target, name);
  require_together(name, x, target);
  if (x.shape() != target.shape())
    refuse(name, "x is " + x.shape().text() + " and target " + target.shape().text() + ": their shapes must be equal");
}
}  // namespace

Tensor mse_loss(const Tensor& x, const Tensor& target, Reduction reduction) {
  require_alike("mse_loss", x, target);
  const Tensor difference = sub(x, target);
  return reduced(mul(difference, difference), reduction);
}

Tensor l1_loss(const Tensor& x, const Tensor& target, Reduction reduction) {
  require_alike("l1_loss", x, target);
  return reduced(abs(sub(x, target)), reduction);
}

Tensor huber_loss(const Tensor& x, const Tensor& target, Reduction reduction, double delta) {
  require_alike("huber_loss", x, target);
  if (!(delta > 0)) refuse("huber_loss", "delta is " + std::to_string(delta) + ": it must be positive");
  const Tensor difference = sub(x, target), distance = abs(difference);
  const Tensor near = mul(mul(difference, difference), 0.5), far = mul(sub(distance, delta / 2), delta);
  return reduced(where(le(distance, delta), near, far), reduction);
}

// -ln(sigmoid(x)) is softplus(-x), and -ln(1 - sigmoid(x)) is x + softplus(-x).
Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target, const Tensor& weight,
                                        const Tensor& pos_weight, Reduction reduction) {
  require_alike("binary_cross_entropy_with_logits", x, target);
  Tensor positive = softplus(neg(x), 1, std::numeric_limits<double>::infinity());
  if (pos_weight.defined()) positive = mul(positive, add(mul(sub(pos_weight, 1), target), 1));
  Tensor losses = add(mul(sub(1, target), x), positive);
  if (weight.defined()) losses = mul(losses, weight);
  return reduced(losses, reduction);
}

Tensor kl_div(const Tensor& x, const Tensor& target, Reduction reduction, bool log_target) {
  require_alike("kl_div", x, target);
  if (log_target) return reduced(mul(exp(target), sub(target, x)), reduction);
  const Tensor some = ne(target, 0), logs = log(where(some, target, 1));
  return reduced(where(some, mul(target, sub(logs, x)), 0), reduction);
}

// --- Losses of classes.

namespace {
// x (n, c, ..) as (m, c); x (c) as (1, c).
Tensor class_rows(const Tensor& x) {
  if (x.rank() == 1) return unsqueeze(x, 0);
  const Tensor last = x.rank() == 2 ? x : movedim(x, {1}, {-1});
  return reshape(last, {x.size(1) ? x.count() / x.size(1) : 0, x.size(1)});
}

// The shape of class targets for x: without the axis of the classes.
Shape target_shape(const Tensor& x) {
  Shape shape;
  for (int i = 0; i < x.rank(); ++i)
    if (i != (x.rank() == 1 ? 0 : 1)) shape.push_back(x.size(i));
  return shape;
}

void require_classes(const char* name, const Tensor& x, const Tensor& target, const Tensor& weight) {
  require_floating(name, x);
  require_integer(name, target, "target");
  if (x.device() != target.device()) throw_not_together(name, x, target);
  if (!x.rank() || !x.size(x.rank() == 1 ? 0 : 1) || target.shape() != target_shape(x))
    refuse(name, "x is " + x.shape().text() + " and targets " + target.shape().text() +
                     ": expected (n, c, ..) and (n, ..), or (c) and (), with c at least 1");
  const int64_t classes = x.size(x.rank() == 1 ? 0 : 1);
  if (weight.defined() && weight.shape() != Shape{classes})
    refuse(name, "weight is " + weight.shape().text() + ": expected (" + std::to_string(classes) + ",)");
}

// Class targets as rows, and what each row counts.
struct Targets {
  Tensor index, counts;  // (m); ignored targets have index 0 and count 0
};
// Which of the flattened targets are not ignored.
Tensor kept_targets(const Tensor& flat, const ClassOptions& options) {
  if (options.ignore_index) return ne(flat, *options.ignore_index);
  return ones(flat.shape(), DType::boolean, flat.device());
}
Targets targets_of(const Tensor& target, DType dtype, const ClassOptions& options) {
  const Tensor flat = reshape(target, {target.count()}), kept = kept_targets(flat, options);
  const Tensor index = options.ignore_index ? where(kept, flat, 0) : flat;
  const Tensor counts = cast(kept, dtype);
  return {index, options.weight.defined() ? mul(gather(options.weight, 0, index), counts) : counts};
}

Tensor reduced_by_weight(const Tensor& losses, const Tensor& counts, const Shape& shape, Reduction reduction) {
  if (reduction == Reduction::none) return reshape(losses, shape);
  return reduction == Reduction::sum ? sum(losses) : div(sum(losses), sum(counts));
}

Tensor picked(const Tensor& rows, const Tensor& index) { return squeeze(gather(rows, 1, unsqueeze(index, 1)), {1}); }

// where, not a product: an ignored row may be infinite.
Tensor counted(const Tensor& counts, const Tensor& losses) { return where(eq(counts, 0), 0, mul(counts, losses)); }
}  // namespace

Tensor nll_loss(const Tensor& x, const Tensor& target, const Tensor& weight, std::optional<int64_t> ignore_index,
                Reduction reduction) {
  require_classes("nll_loss", x, target, weight);
  const Targets targets = targets_of(target, x.dtype(), {weight, ignore_index});
  const Tensor losses = counted(targets.counts, neg(picked(class_rows(x), targets.index)));
  return reduced_by_weight(losses, targets.counts, target.shape(), reduction);
}

namespace {
// targets: a probability for each class.
Tensor entropy_of_probabilities(const Tensor& logits, const Tensor& targets, Reduction reduction,
                                const ClassOptions& options) {
  require_together("cross_entropy", logits, targets);
  const Tensor rows = class_rows(logits);
  Tensor wanted = class_rows(targets), logs = log_softmax(rows, 1);
  const double smoothing = options.label_smoothing;
  if (smoothing > 0) wanted = add(mul(wanted, 1 - smoothing), smoothing / static_cast<double>(rows.size(1)));
  if (options.weight.defined()) logs = mul(logs, options.weight);
  const Tensor losses = neg(sum(mul(logs, wanted), {1}));
  return reduction == Reduction::none ? reshape(losses, target_shape(logits)) : reduced(losses, reduction);
}

// The mean of all classes' losses, which smoothing mixes in.
Tensor smooth_losses(const Tensor& logs, const Tensor& kept, const ClassOptions& options) {
  const Tensor weighted = options.weight.defined() ? mul(logs, options.weight) : logs;
  return where(kept, neg(div(sum(weighted, {1}), static_cast<double>(logs.size(1)))), 0);
}
}  // namespace

Tensor general_cross_entropy(const Tensor& logits, const Tensor& targets, Reduction reduction, const ClassOptions& options) {
  const double smoothing = options.label_smoothing;
  if (!(smoothing >= 0 && smoothing <= 1))
    refuse("cross_entropy", "label_smoothing is " + std::to_string(smoothing) + ": expected 0 to 1");
  if (targets.dtype() == logits.dtype() && targets.shape() == logits.shape() && logits.rank())
    return entropy_of_probabilities(logits, targets, reduction, options);
  require_classes("cross_entropy", logits, targets, options.weight);
  const Targets chosen = targets_of(targets, logits.dtype(), options);
  const Tensor rows = class_rows(logits);
  if (smoothing == 0) {
    const Tensor losses = counted(chosen.counts, cross_entropy(rows, chosen.index, Reduction::none));
    return reduced_by_weight(losses, chosen.counts, targets.shape(), reduction);
  }
  const Tensor logs = log_softmax(rows, 1), kept = kept_targets(reshape(targets, {targets.count()}), options);
  const Tensor own = counted(chosen.counts, neg(picked(logs, chosen.index)));
  const Tensor losses = add(mul(own, 1 - smoothing), mul(smooth_losses(logs, kept, options), smoothing));
  return reduced_by_weight(losses, chosen.counts, targets.shape(), reduction);
}

}  // namespace plugrad
