#include <plugrad/ops/losses.hpp>

#include <core/ops/argument.hpp>
#include <core/ops/autocast_rules.hpp>
#include <core/ops/cross_entropy.hpp>
#include <core/ops/run.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/activations.hpp>
#include <plugrad/ops/arrangement.hpp>
#include <plugrad/ops/complex.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/indexing.hpp>
#include <plugrad/ops/powers.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/numbers.hpp>

#include <cmath>
#include <limits>
#include <numbers>

namespace plugrad {

Tensor reduced(const Tensor& losses, Reduction reduction) {
  if (reduction == Reduction::batchmean) refuse("reduction", "batchmean is a reduction of kl_div only: use mean");
  return reduction == Reduction::none ? losses : reduction == Reduction::sum ? sum(losses) : mean(losses);
}

// --- Losses of numbers.

namespace {
void require_fitting(const char* name, const Tensor& x, const Tensor& target) {
  require_defined(target, name);
  require_together(name, x, target);
  if (x.shape() != target.shape())
    refuse(name, "x is " + x.shape().text() + " and target " + target.shape().text() + ": their shapes must be equal");
}
void require_alike(const char* name, const Tensor& x, const Tensor& target) {
  require_floating(name, x);
  require_fitting(name, x, target);
}
// For losses of real and of complex numbers.
void require_alike_numbers(const char* name, const Tensor& x, const Tensor& target) {
  require_inexact(name, x);
  require_fitting(name, x, target);
}
}  // namespace

Tensor mse_loss(const Tensor& x, const Tensor& target, Reduction reduction) {
  if (autocasting()) [[unlikely]]
    return in_f32(mse_loss, x, target, reduction);
  if (are_halves(x, target)) return rounded_once(x, mse_loss, x, target, reduction);
  require_alike_numbers("mse_loss", x, target);
  if (is_complex(x.dtype()))
    return add(mse_loss(real(x), real(target), reduction), mse_loss(imag(x), imag(target), reduction));
  const Tensor difference = sub(x, target);
  return reduced(mul(difference, difference), reduction);
}

Tensor l1_loss(const Tensor& x, const Tensor& target, Reduction reduction) {
  if (autocasting()) [[unlikely]]
    return in_f32(l1_loss, x, target, reduction);
  if (are_halves(x, target)) return rounded_once(x, l1_loss, x, target, reduction);
  require_alike_numbers("l1_loss", x, target);
  return reduced(abs(sub(x, target)), reduction);
}

Tensor huber_loss(const Tensor& x, const Tensor& target, Reduction reduction, double delta) {
  if (autocasting()) [[unlikely]]
    return in_f32(huber_loss, x, target, reduction, delta);
  if (are_halves(x, target)) return rounded_once(x, huber_loss, x, target, reduction, delta);
  require_alike("huber_loss", x, target);
  if (!(delta > 0)) refuse("huber_loss", "delta is " + number_text(delta) + ": it must be positive");
  const Tensor difference = sub(x, target), distance = abs(difference);
  const Tensor near = mul(mul(difference, difference), 0.5), far = mul(sub(distance, delta / 2), delta);
  return reduced(where(le(distance, delta), near, far), reduction);
}

Tensor smooth_l1_loss(const Tensor& x, const Tensor& target, Reduction reduction, double beta) {
  if (autocasting()) [[unlikely]]
    return in_f32(smooth_l1_loss, x, target, reduction, beta);
  if (are_halves(x, target)) return rounded_once(x, smooth_l1_loss, x, target, reduction, beta);
  require_alike("smooth_l1_loss", x, target);
  if (!(beta >= 0)) refuse("smooth_l1_loss", "beta is " + number_text(beta) + ": expected 0 or more");
  if (beta == 0) return l1_loss(x, target, reduction);
  const Tensor difference = sub(x, target), distance = abs(difference);
  const Tensor near = mul(mul(difference, difference), 0.5 / beta), far = sub(distance, beta / 2);
  return reduced(where(lt(distance, beta), near, far), reduction);
}

// --- Likelihoods.

namespace {
Tensor limited_log(const Tensor& x) { return maximum(log(x), -100); }

Tensor computed_entropy(const Tensor& x, const Tensor& target) {
  const NoGrad unrecorded;
  const Tensor p = at_least_f32(x), t = at_least_f32(target);
  const Tensor of_others = maximum(log1p(neg(p)), -100);
  return cast(sub(mul(sub(t, 1), of_others), mul(t, limited_log(p))), x.dtype());
}

Tensor entropy_of(const Tensor& x, const Tensor& target) {
  static constexpr auto kRule =
      rule("binary_cross_entropy", gradient<kInput0, kInput1>([](const Tensor& grad, const Tensor& p, const Tensor& t) {
             return mul(grad, div(sub(p, t), maximum(mul(sub(1, p), p), 1e-12)));
           }),
           gradient<kInput0>([](const Tensor& grad, const Tensor& p) { return mul(grad, sub(log1p(neg(p)), log(p))); }));
  return differentiable(kRule, computed_entropy(x, target), x, target);
}
}  // namespace

Tensor binary_cross_entropy(const Tensor& x, const Tensor& target, const Tensor& weight, Reduction reduction) {
  if (autocasting()) [[unlikely]]
    return in_f32(binary_cross_entropy, x, target, weight, reduction);
  if (are_halves(x, target)) return rounded_once(x, binary_cross_entropy, x, target, weight, reduction);
  require_alike("binary_cross_entropy", x, target);
  const Tensor losses = entropy_of(x, target);
  return reduced(weight.defined() ? mul(losses, weight) : losses, reduction);
}

Tensor poisson_nll_loss(const Tensor& x, const Tensor& target, bool log_input, bool full, double eps, Reduction reduction) {
  if (autocasting()) [[unlikely]]
    return in_f32(poisson_nll_loss, x, target, log_input, full, eps, reduction);
  if (are_halves(x, target)) return rounded_once(x, poisson_nll_loss, x, target, log_input, full, eps, reduction);
  require_alike("poisson_nll_loss", x, target);
  Tensor losses = log_input ? sub(exp(x), mul(target, x)) : sub(x, mul(target, log(add(x, eps))));
  if (full) {
    const Tensor many = gt(target, 1), counts = where(many, target, 1);
    const Tensor stirling = add(sub(mul(counts, log(counts)), counts), mul(log(mul(counts, 2 * std::numbers::pi)), 0.5));
    losses = add(losses, where(many, stirling, 0));
  }
  return reduced(losses, reduction);
}

Tensor gaussian_nll_loss(const Tensor& x, const Tensor& target, const Tensor& var, bool full, double eps,
                         Reduction reduction) {
  if (autocasting()) [[unlikely]]
    return in_f32(gaussian_nll_loss, x, target, var, full, eps, reduction);
  if (are_halves(x, target, var)) return rounded_once(x, gaussian_nll_loss, x, target, var, full, eps, reduction);
  require_floating("gaussian_nll_loss", x);
  require_floating("gaussian_nll_loss", target);
  require_floating("gaussian_nll_loss", var);
  const bool lacks_last = var.rank() + 1 == x.rank() && x.rank() && var.shape() != x.shape();
  const Tensor spread = lacks_last ? unsqueeze(var, -1) : var, plain = spread.detach();
  const Tensor limited = add(spread, sub(maximum(plain, eps), plain));
  const Tensor difference = sub(x, target);
  const Tensor losses = mul(add(log(limited), div(mul(difference, difference), limited)), 0.5);
  return reduced(full ? add(losses, std::log(2 * std::numbers::pi) / 2) : losses, reduction);
}

// -ln(sigmoid(x)) is softplus(-x), and -ln(1 - sigmoid(x)) is x + softplus(-x).
Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target, const Tensor& weight,
                                        const Tensor& pos_weight, Reduction reduction) {
  if (autocasting()) [[unlikely]]
    return in_f32(binary_cross_entropy_with_logits, x, target, weight, pos_weight, reduction);
  if (are_halves(x, target))
    return rounded_once(x, binary_cross_entropy_with_logits, x, target, weight, pos_weight, reduction);
  require_alike("binary_cross_entropy_with_logits", x, target);
  Tensor positive = softplus(neg(x), 1, std::numeric_limits<double>::infinity());
  if (pos_weight.defined()) positive = mul(positive, add(mul(sub(pos_weight, 1), target), 1));
  Tensor losses = add(mul(sub(1, target), x), positive);
  if (weight.defined()) losses = mul(losses, weight);
  return reduced(losses, reduction);
}

Tensor kl_div(const Tensor& x, const Tensor& target, Reduction reduction, bool log_target) {
  if (autocasting()) [[unlikely]]
    return in_f32(kl_div, x, target, reduction, log_target);
  if (are_halves(x, target)) return rounded_once(x, kl_div, x, target, reduction, log_target);
  require_alike("kl_div", x, target);
  if (reduction == Reduction::batchmean) {
    const Tensor total = kl_div(x, target, Reduction::sum, log_target);
    return x.rank() ? div(total, static_cast<double>(x.size(0))) : total;
  }
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

// Class targets as rows, and the weight of each row.
struct Targets {
  Tensor index, counts;  // (m); ignored targets have index 0 and count 0
};
// True where a flattened target is not ignored.
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
  if (autocasting()) [[unlikely]]
    return in_f32(nll_loss, x, target, weight, ignore_index, reduction);
  if (are_halves(x)) return rounded_once(x, nll_loss, x, target, weight, ignore_index, reduction);
  require_classes("nll_loss", x, target, weight);
  const Targets targets = targets_of(target, x.dtype(), {weight, ignored_in(target, ignore_index)});
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
  if (options.weight.defined()) logs = mul(logs, at_least_f32(options.weight));
  const Tensor losses = neg(sum(mul(logs, wanted), {1}));
  return reduction == Reduction::none ? reshape(losses, target_shape(logits)) : reduced(losses, reduction);
}

// The mean of all classes' losses; smoothing mixes it in.
Tensor smooth_losses(const Tensor& logs, const Tensor& kept, const ClassOptions& options) {
  const Tensor weighted = options.weight.defined() ? mul(logs, options.weight) : logs;
  return where(kept, neg(div(sum(weighted, {1}), static_cast<double>(logs.size(1)))), 0);
}
}  // namespace

Tensor general_cross_entropy(const Tensor& logits, const Tensor& targets, Reduction reduction, const ClassOptions& options) {
  const double smoothing = options.label_smoothing;
  if (!(smoothing >= 0 && smoothing <= 1))
    refuse("cross_entropy", "label_smoothing is " + number_text(smoothing) + ": expected 0 to 1");
  if (is_floating(targets.dtype()) && targets.shape() == logits.shape() && logits.rank())
    return entropy_of_probabilities(at_least_f32(logits), at_least_f32(targets), reduction, options);
  require_classes("cross_entropy", logits, targets, options.weight);
  const ClassOptions wide{detail::wide_argument(options.weight), options.ignore_index, smoothing};
  const Targets chosen = targets_of(targets, accumulator_of(logits.dtype()), wide);
  const Tensor rows = class_rows(logits);
  if (smoothing == 0) {
    const Tensor losses = counted(chosen.counts, row_losses(rows, chosen.index));
    return reduced_by_weight(losses, chosen.counts, targets.shape(), reduction);
  }
  const Tensor logs = log_softmax(at_least_f32(rows), 1), kept = kept_targets(reshape(targets, {targets.count()}), options);
  const Tensor own = counted(chosen.counts, neg(picked(logs, chosen.index)));
  const Tensor losses = add(mul(own, 1 - smoothing), mul(smooth_losses(logs, kept, wide), smoothing));
  return reduced_by_weight(losses, chosen.counts, targets.shape(), reduction);
}

}  // namespace plugrad
