#include <plugrad/nn/ctc_loss.hpp>

#include <plugrad/ops/activations.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/indexing.hpp>
#include <plugrad/ops/logic.hpp>
#include <plugrad/ops/parts.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/error.hpp>

#include <limits>
#include <string>

namespace plugrad::nn {
namespace {
// The logarithm of a probability of 0. It is finite, so that differences of two such numbers are no NaN.
constexpr double kImpossible = -1e30;

[[noreturn]] void refuse_ctc(const std::string& what) { throw Error(Code::invalid, "[ctc_loss] " + what); }

void require_fitting(const Tensor& log_probs, const Tensor& targets, const Tensor& inputs, const Tensor& lengths,
                     int64_t blank) {
  if (!log_probs.defined() || log_probs.rank() != 3 || !is_floating(log_probs.dtype()) || log_probs.size(0) == 0)
    refuse_ctc("log_probs must be floating and have the shape (t, n, c), with at least one step");
  const int64_t n = log_probs.size(1), c = log_probs.size(2);
  if (!targets.defined() || targets.rank() != 2 || targets.size(0) != n || targets.dtype() != DType::i64)
    refuse_ctc("targets must be i64 of shape (" + std::to_string(n) + ", s)");
  for (const Tensor* each : {&inputs, &lengths})
    if (!each->defined() || each->shape() != Shape{n} || each->dtype() != DType::i64)
      refuse_ctc("input_lengths and target_lengths must be i64 of shape (" + std::to_string(n) + ",)");
  if (blank < 0 || blank >= c)
    refuse_ctc("blank is " + std::to_string(blank) + ": expected a class from 0 to " + std::to_string(c - 1));
}

// blank, target 0, blank, target 1 .. blank: (n, 2 s + 1).
Tensor with_blanks(const Tensor& targets, int64_t blank) {
  const int64_t n = targets.size(0), s = targets.size(1);
  const Tensor blanks = full({n, s, 1}, blank, DType::i64, targets.device());
  const Tensor pairs = reshape(cat({blanks, unsqueeze(targets, 2)}, 2), {n, 2 * s});
  return cat({pairs, full({n, 1}, blank, DType::i64, targets.device())}, 1);
}

// x (n, l), moved to the right by some places, filled with kImpossible.
Tensor moved(const Tensor& x, int64_t by) {
  const Tensor filled = full({x.size(0), by}, kImpossible, x.dtype(), x.device());
  return x.size(1) <= by ? narrow(cat({filled, x}, 1), 1, 0, x.size(1)) : cat({filled, narrow(x, 1, 0, x.size(1) - by)}, 1);
}

// ln(e^a + e^b + e^c).
Tensor sum_of(const Tensor& a, const Tensor& b, const Tensor& c) {
  const Tensor most = maximum(maximum(a, b), c).detach();
  return add(most, log(add(add(exp(sub(a, most)), exp(sub(b, most))), exp(sub(c, most)))));
}

// The last sums of all alignments that end with the last target or with the blank behind it.
Tensor likelihood_of(const Tensor& last, const Tensor& target_lengths) {
  const Tensor ends = unsqueeze(mul(target_lengths, 2), 1);
  const Tensor blank = gather(last, 1, ends);
  const Tensor before = gather(last, 1, maximum(sub(ends, ones_like(ends)), 0));
  const Tensor target = where(eq(ends, 0), kImpossible, before), most = maximum(blank, target).detach();
  return squeeze(add(most, log(add(exp(sub(blank, most)), exp(sub(target, most))))), {1});
}
}  // namespace

// alpha_t(s) of section 4.1: the logarithm of the probability of all alignments of the first steps with the first s labels.
Tensor CTCLoss::operator()(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                           const Tensor& target_lengths) const {
  require_fitting(log_probs, targets, input_lengths, target_lengths, blank);
  const int64_t steps = log_probs.size(0), n = log_probs.size(1);
  const Tensor labels = with_blanks(targets, blank);
  const int64_t l = labels.size(1);
  // Padding may hold any number, so its classes count as blank; alignments never reach it.
  const Tensor places = reshape(arange(0, l, 1, DType::i64, labels.device()), {1, l});
  const Tensor used = where(lt(places, unsqueeze(mul(target_lengths, 2), 1)), labels, full_like(labels, blank));
  const Tensor chosen = gather(log_probs, 2, expand(unsqueeze(used, 0), {steps, n, l}));
  // A target may follow the target before it without a blank, unless both are equal.
  const Tensor two_before =
      l > 2 ? cat({full({n, 2}, blank, DType::i64, used.device()), narrow(used, 1, 0, l - 2)}, 1) : full_like(used, blank);
  const Tensor may_skip = logical_and(ne(used, blank), ne(used, two_before));
  Tensor alpha = where(lt(expand(places, {n, l}), 2), select(chosen, 0, 0), kImpossible);
  for (int64_t t = 1; t < steps; ++t) {
    const Tensor skipped = where(may_skip, moved(alpha, 2), kImpossible);
    const Tensor next = add(sum_of(alpha, moved(alpha, 1), skipped), select(chosen, 0, t));
    alpha = where(unsqueeze(gt(input_lengths, t), 1), next, alpha);
  }
  // Without a step, only an empty target is possible.
  const Tensor nothing = where(eq(target_lengths, 0), zeros({n}, alpha.dtype(), alpha.device()), kImpossible);
  const Tensor likelihood = where(eq(input_lengths, 0), nothing, likelihood_of(alpha, target_lengths));
  const Tensor is_possible = gt(likelihood, kImpossible / 2);
  const double otherwise = zero_infinity ? 0 : std::numeric_limits<double>::infinity();
  const Tensor loss = where(is_possible, neg(likelihood), otherwise);
  if (reduction == Reduction::none) return loss;
  if (reduction == Reduction::sum) return sum(loss);
  return mean(div(loss, cast(maximum(target_lengths, 1), loss.dtype())));
}

}  // namespace plugrad::nn
