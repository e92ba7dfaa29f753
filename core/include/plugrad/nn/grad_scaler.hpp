// Scales losses, so that f16 does not round small gradients to 0.
#pragma once
#include <plugrad/nn/optimizer.hpp>

namespace plugrad::nn {

struct GradScalerOptions {
  double init_scale = 65536, growth_factor = 2, backoff_factor = 0.5;
  int64_t growth_interval = 2000;
  bool enabled = true;  // false: losses and gradients stay unchanged
};

// Multiplies losses by a factor, divides the gradients by it again, and skips the step if a gradient is not finite. A
// skipped step lowers the factor, and growth_interval steps without a skip raise it: as torch.amp.GradScaler.
//   scaler.scale(loss).backward();
//   scaler.step(optimizer);
//   scaler.update();
// Not thread-safe.
class PLUGRAD_API GradScaler {
 public:
  // Throws Error (invalid) if init_scale is not positive and finite, growth_factor not above 1, backoff_factor not between
  // 0 and 1, or growth_interval below 1.
  explicit GradScaler(GradScalerOptions options = {});
  // The loss times the factor, in f32 at least: f16 ends at 65504.
  Tensor scale(const Tensor& loss) const;
  // Divides the gradients of the optimiser's parameters by the factor, in place: call it before a step to clip them.
  // Throws Error (invalid) for a second call before update(), and for gradients in f16: their parameters should be f32.
  void unscale_(Optimizer& optimizer);
  // Makes the optimiser's step if all gradients are finite, and returns whether they are. Calls unscale_ if it was not
  // called. Throws Error (invalid) for a second call before update().
  bool step(Optimizer& optimizer);
  // Adapts the factor to the steps since the last call. Throws Error (invalid) if there was no step.
  void update();

  // The factor; 1 if the scaler is not enabled.
  double get_scale() const { return options_.enabled ? scale_ : 1; }
  // The number of steps without an infinity since the factor last changed.
  int64_t growth_tracker() const { return growth_tracker_; }
  const GradScalerOptions& options() const { return options_; }
  // Restores the results of get_scale() and growth_tracker(). Throws Error (invalid) unless the factor is positive and
  // finite.
  void load_state(double scale, int64_t growth_tracker);

 private:
  struct Seen {
    const Optimizer* optimizer;
    bool finite, stepped = false;
  };
  Seen* seen(const Optimizer& optimizer);
  GradScalerOptions options_;
  double scale_;
  int64_t growth_tracker_ = 0;
  std::vector<Seen> seen_;  // since the last update
};

}  // namespace plugrad::nn
