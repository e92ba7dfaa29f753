#include <plugrad/nn/grad_scaler.hpp>

#include <core/runtime/observe/observer.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/transform.hpp>
#include <plugrad/runtime/error.hpp>
#include <plugrad/runtime/numbers.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace plugrad::nn {
namespace {
[[noreturn]] void refuse_scale(const std::string& why) { throw Error(Code::invalid, "[GradScaler] " + why); }

void require_factor(double scale) {
  if (!(scale > 0) || !std::isfinite(scale))
    refuse_scale("the factor is " + number_text(scale) + ": expected a positive, finite number");
}

// 0 if all elements are finite, else NaN.
Tensor trace_of_infinities(const Tensor& x) { return sum(mul(x, 0)); }

// Divides a gradient by the factor and adds its trace.
void unscale(Tensor grad, double scale, Tensor& traces) {
  if (grad.dtype() == DType::f16)
    refuse_scale("a gradient of shape " + grad.shape().text() +
                 " is f16: keep its parameter in f32, and let an Autocast convert it");
  grad.mul_(1 / scale);
  const Tensor trace = cast(trace_of_infinities(grad), DType::f64);
  traces = traces.defined() ? add(traces, to(trace, traces.device())) : trace;
}
}  // namespace

GradScaler::GradScaler(GradScalerOptions options) : options_(options), scale_(options.init_scale) {
  require_factor(scale_);
  if (!(options_.growth_factor > 1) || !std::isfinite(options_.growth_factor))
    refuse_scale("growth_factor is " + number_text(options_.growth_factor) + ": expected more than 1");
  if (!(options_.backoff_factor > 0 && options_.backoff_factor < 1))
    refuse_scale("backoff_factor is " + number_text(options_.backoff_factor) + ": expected a number between 0 and 1");
  if (options_.growth_interval < 1)
    refuse_scale("growth_interval is " + std::to_string(options_.growth_interval) + ": expected at least 1");
}

Tensor GradScaler::scale(const Tensor& loss) const {
  if (!options_.enabled) return loss;
  observe::unrepeatable("scales a loss by the changing factor of a GradScaler",
                        "compile the forward pass alone, or train in bf16, which needs no GradScaler");
  return mul(cast(loss, promote_types(loss.dtype(), DType::f32)), scale_);
}

GradScaler::Seen* GradScaler::seen(const Optimizer& optimizer) {
  const auto found = std::ranges::find(seen_, &optimizer, &Seen::optimizer);
  return found == seen_.end() ? nullptr : &*found;
}

void GradScaler::unscale_(Optimizer& optimizer) {
  if (!options_.enabled) return;
  if (seen(optimizer)) refuse_scale("unscale_ was called for this optimiser already: call update() after its step");
  const NoGrad unrecorded;
  Tensor traces;
  for (size_t group = 0; group < optimizer.groups(); ++group)
    for (const Tensor& each : optimizer.parameters(group))
      if (const Tensor grad = each.grad(); grad.defined()) unscale(grad, scale_, traces);
  seen_.push_back({&optimizer, !traces.defined() || std::isfinite(traces.item<double>())});
}

bool GradScaler::step(Optimizer& optimizer) {
  if (!options_.enabled) {
    optimizer.step();
    return true;
  }
  if (!seen(optimizer)) unscale_(optimizer);
  Seen& state = *seen(optimizer);
  if (state.stepped) refuse_scale("step was called for this optimiser already: call update() after its step");
  state.stepped = true;
  if (state.finite) optimizer.step();
  return state.finite;
}

void GradScaler::update() {
  if (!options_.enabled) return;
  if (seen_.empty()) refuse_scale("update was called without a step before it: call step(optimizer) first");
  const bool finite = std::ranges::all_of(seen_, &Seen::finite);
  seen_.clear();
  if (!finite) {
    scale_ = std::max(scale_ * options_.backoff_factor, std::numeric_limits<double>::min());
    growth_tracker_ = 0;
  } else if (++growth_tracker_ == options_.growth_interval) {
    if (const double grown = scale_ * options_.growth_factor; grown <= std::numeric_limits<float>::max()) scale_ = grown;
    growth_tracker_ = 0;
  }
}

void GradScaler::load_state(double scale, int64_t growth_tracker) {
  require_factor(scale);
  if (growth_tracker < 0) refuse_scale("the number of steps is " + std::to_string(growth_tracker) + ": expected 0 or more");
  scale_ = scale;
  growth_tracker_ = growth_tracker;
}

}  // namespace plugrad::nn
