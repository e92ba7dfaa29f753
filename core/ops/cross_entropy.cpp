#include <plugrad/ops/reduce.hpp>

#include <core/ops/autocast_rules.hpp>
#include <core/ops/backward.hpp>
#include <core/ops/cross_entropy.hpp>
#include <core/ops/run.hpp>
#include <core/runtime/local.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/gradients.hpp>
#include <plugrad/ops/indexing.hpp>
#include <plugrad/ops/views.hpp>

#include <algorithm>
#include <span>

namespace plugrad {
namespace {
constexpr auto log_softmax_grad = [](const Tensor& grad, const Tensor& y, int axis) {
  if (may_fuse() && y.count()) {
    const plugrad_axis attributes{sizeof attributes, axis};
    const Tensor out = empty_like(Op::LOG_SOFTMAX_BACKWARD, device_of(y), view_of(y), dtype_of(y));
    if (try_run(Op::LOG_SOFTMAX_BACKWARD, {out}, {grad, y}, attributes)) return out;
    count_decomposition(y);
  }
  return sub(grad, mul(exp(y), sum(grad, {axis}, true)));
};

// Subtracting a row's maximum prevents overflow and does not change the softmax.
Tensor composed_log_softmax(const Tensor& x, int axis) {
  const Tensor centred = sub(x, max(x, {axis}, true));
  return sub(centred, log(sum(exp(centred), {axis}, true)));
}
}  // namespace

Tensor log_softmax_backward(const Tensor& grad, const Tensor& y, int axis) {
  return gradient_along("log_softmax_backward", grad, y, axis, log_softmax_grad);
}

Tensor log_softmax(const Tensor& x, int axis) {
  if (autocasting()) [[unlikely]]
    return in_f32(log_softmax, x, axis);
  static constexpr auto kRule = rule("log_softmax", gradient<kOutput, kPayload>(log_softmax_grad));
  require(Op::LOG_SOFTMAX, x);
  require_floating(Op::LOG_SOFTMAX, dtype_of(x));
  const int at = normal_axis(axis, std::max(1, x.rank()), "log_softmax");
  if (!x.rank()) return squeeze(log_softmax(unsqueeze(x, 0), 0), {0});
  const plugrad_axis attributes{sizeof attributes, at};
  Tensor out = empty_like(Op::LOG_SOFTMAX, device_of(x), view_of(x), dtype_of(x));
  if (x.count() && !try_run(Op::LOG_SOFTMAX, {out}, {x}, attributes)) {
    count_decomposition(x);
    const NoGrad unrecorded;
    out = composed_log_softmax(x, at);
  }
  return differentiable(kRule, at, std::move(out), x);
}

namespace {
// lse: the logarithm of each row's sum of exponentials.
constexpr auto cross_entropy_grad = [](const Tensor& grad, const Tensor& x, const Tensor& target, const Tensor& lse) {
  if (may_fuse()) {
    const Tensor out = empty_like(Op::CROSS_ENTROPY_BACKWARD, device_of(x), view_of(x), dtype_of(x));
    if (try_run(Op::CROSS_ENTROPY_BACKWARD, {out}, {grad, x, target, lse})) return out;
    count_decomposition(x);
  }
  const Tensor index = unsqueeze(target, 1), wide = at_least_f32(x);
  const Tensor one_hot =
      scatter_add(zeros(x.shape(), wide.dtype(), x.device()), 1, index, ones(index.shape(), wide.dtype(), x.device()));
  return cast(mul(sub(exp(log_softmax(wide, 1)), one_hot), unsqueeze(grad, 1)), x.dtype());
};

// The loss of each row, or an undefined tensor if the device has no kernel for it.
Tensor native_cross_entropy(const Tensor& x, const Tensor& target) {
  static constexpr auto kRule = rule("cross_entropy", gradient<kInput0, kInput1, kInput2>(cross_entropy_grad));
  DeviceState& device = device_of(x);
  const uint8_t wide = accumulator_dtype(dtype_of(x));
  const auto of_rows = [&] { return empty_like(Op::CROSS_ENTROPY, device, view_of(target), wide); };
  Tensor loss = of_rows(), lse = of_rows();
  if (!try_run(Op::CROSS_ENTROPY, {loss, lse}, {x, target})) {
    count_decomposition(x);
    return {};
  }
  return differentiable(kRule, std::move(loss), x, target, lse);
}

void require_logits(const Tensor& logits, const Tensor& targets) {
  if (logits.device() != targets.device()) throw_not_together(Op::CROSS_ENTROPY, logits, targets);
  if (logits.rank() != 2 || targets.rank() != 1 || logits.size(0) != targets.size(0) || !logits.size(1))
    throw Error(Code::invalid, "[cross_entropy] logits are " + logits.shape().text() + " and targets " +
                                   targets.shape().text() + ": expected (n, c) and (n,), with c at least 1");
}
}  // namespace

Tensor row_losses(const Tensor& x, const Tensor& target) {
  require_logits(x, target);
  Tensor loss;
  if (x.count()) loss = native_cross_entropy(x, target);
  if (loss.defined()) return loss;
  return neg(squeeze(gather(log_softmax(at_least_f32(x), 1), 1, unsqueeze(target, 1)), {1}));
}

std::optional<int64_t> ignored_in(const Tensor& targets, std::optional<int64_t> ignore_index) {
  const plugrad_view& view = view_of(targets);
  const DeviceState& device = device_of(targets);
  const bool may_look = device.host_memory() && !device.compute && !observe::hides_elements();
  const bool is_at_hand = may_look && targets.dtype() == DType::i64 && is_dense(view) && view.count;
  if (!ignore_index || !is_at_hand) return ignore_index;
  const char* const first = reinterpret_cast<const char*>(storage_of(targets)->buffer) + view.offset;
  const std::span values(reinterpret_cast<const int64_t*>(first), static_cast<size_t>(view.count));
  return std::ranges::find(values, *ignore_index) == values.end() ? std::nullopt : ignore_index;
}

namespace {
// The result in the dtype of the accumulator.
Tensor wide_cross_entropy(const Tensor& logits, const Tensor& targets, Reduction reduction, const Tensor& weight,
                          std::optional<int64_t> ignore_index, double label_smoothing) {
  if (is_integer(targets.dtype()) && targets.dtype() != DType::i64)
    return wide_cross_entropy(logits, cast(targets, DType::i64), reduction, weight, ignore_index, label_smoothing);
  ignore_index = ignored_in(targets, ignore_index);
  const bool plain = logits.rank() == 2 && targets.dtype() == DType::i64 && !weight.defined() && !ignore_index;
  if (!plain || label_smoothing != 0)
    return general_cross_entropy(logits, targets, reduction, {weight, ignore_index, label_smoothing});
  return reduced(row_losses(logits, targets), reduction);
}
}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& targets, Reduction reduction, const Tensor& weight,
                     std::optional<int64_t> ignore_index, double label_smoothing) {
  require_defined(logits, "cross_entropy");
  require_defined(targets, "cross_entropy");
  require_floating(Op::CROSS_ENTROPY, dtype_of(logits));
  if (autocasting()) [[unlikely]] {
    const bool covers = autocast_state().covers(logits);
    const WithoutAutocast own_dtypes;
    // The loss is f32 without logits in f32.
    if (covers) return wide_cross_entropy(logits, targets, reduction, weight, ignore_index, label_smoothing);
    return cross_entropy(logits, targets, reduction, weight, ignore_index, label_smoothing);
  }
  const Tensor loss = wide_cross_entropy(logits, targets, reduction, weight, ignore_index, label_smoothing);
  return are_halves(logits) ? cast(loss, logits.dtype()) : loss;
}

}  // namespace plugrad
