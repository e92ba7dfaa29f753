// Mixed precision: PyTorch's own lists of ops, for torch.autocast("plugrad").
#include <ATen/Operators.h>
#include <ATen/autocast_mode.h>
#include <torch/library.h>
#include <bridge/kernel.hpp>
#include <plugrad/ops/logic.hpp>
#include <plugrad/ops/raw.hpp>

namespace plugrad_torch {
namespace o = at::_ops;
namespace {
// GradScaler: multiplies each gradient by inverse_scale, and sets found_inf to 1 if one was not finite.
void unscale(at::TensorList grads, T& found_inf, const T& inverse_scale) {
  P found = over(found_inf), inverse = over(inverse_scale);
  for (const T& grad : grads) {
    if (!grad.numel()) continue;
    P values = over(grad);
    const P is_bad = plugrad::logical_not(plugrad::all(plugrad::isfinite(values)));
    found.copy_(plugrad::maximum(found, plugrad::cast(is_bad, found.dtype())));
    values.copy_(plugrad::mul(values, plugrad::cast(inverse, values.dtype())));
  }
}
// The scale shrinks after an infinite gradient, and grows after `interval` steps without one.
T& update_scale(T& scale, T& tracker, const T& found_inf, double growth, double backoff, int64_t interval) {
  P s = over(scale), steps = over(tracker);
  const P is_bad = plugrad::gt(over(found_inf), 0);
  const P next = plugrad::add(steps, 1), grows = plugrad::eq(next, interval);
  const P grown = plugrad::mul(s, growth);
  const P larger = plugrad::where(plugrad::logical_and(grows, plugrad::isfinite(grown)), grown, s);
  s.copy_(plugrad::where(is_bad, plugrad::mul(s, backoff), larger));
  steps.copy_(plugrad::where(plugrad::logical_or(is_bad, grows), 0, next));
  return scale;
}
}  // namespace
}  // namespace plugrad_torch

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  using namespace plugrad_torch;
  kernel<o::_amp_foreach_non_finite_check_and_unscale_, unscale>(library);
  kernel<o::_amp_update_scale_, update_scale>(library);
}

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
  using namespace at;  // the lists name PyTorch's types
  // The lists are macros of PyTorch, and so must be what they are given.
#define PLUGRAD_LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define PLUGRAD_FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define PLUGRAD_FP32_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define PLUGRAD_REDISPATCH(...) KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE(__VA_ARGS__)
#define PLUGRAD_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_LOWER_PRECISION_FP(PLUGRAD_LOWER)
  AT_FORALL_FP32(PLUGRAD_FP32)
  AT_FORALL_FP32_SET_OPT_DTYPE(PLUGRAD_FP32_DTYPE)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(PLUGRAD_REDISPATCH)
  AT_FORALL_PROMOTE(PLUGRAD_PROMOTE)
  KERNEL_PRIVATEUSEONE(cross_entropy_loss, fp32)
}
