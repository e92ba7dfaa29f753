// More, The Levenberg-Marquardt Algorithm: Implementation and Theory, 1978, with the rules of MINPACK's lmder.
#include <core/optimize/linear_model.hpp>
#include <core/optimize/residual_evaluations.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace plugrad::optimize {
namespace {

// The shift for which the step has the length `radius` to 10 %, or 0 if the Gauss-Newton step is not longer. Begins with a
// guess; section 5.
double shift_for(const LinearModel& model, double radius, double guess) {
  const double newton_excess = norm(model.newton_step()) - radius;
  if (newton_excess <= 0.1 * radius) return 0;
  const auto correction = [&](const LinearModel::Excess& e) { return -(e.value + radius) / radius * e.value / e.slope; };
  double low = model.has_full_rank() ? correction(model.excess(0, radius)) : 0;
  double high = model.gradient_norm() / radius;
  if (high == 0) high = std::numeric_limits<double>::min() / std::min(radius, 0.1);
  double shift = std::clamp(guess, low, std::max(low, high));
  if (shift == 0) shift = model.gradient_norm() / (newton_excess + radius);
  double before = newton_excess;
  for (int i = 1;; ++i) {
    if (shift == 0) shift = std::max(std::numeric_limits<double>::min(), 0.001 * high);
    const LinearModel::Excess excess = model.excess(shift, radius);
    const bool is_flat = low == 0 && excess.value <= before && before < 0;
    if (std::abs(excess.value) <= 0.1 * radius || is_flat || i == 10) return shift;
    if (excess.value > 0) low = std::max(low, shift);
    else high = std::min(high, shift);
    shift = std::max(low, shift + correction(excess));
    before = excess.value;
  }
}

class DampedSearch {
 public:
  DampedSearch(ResidualEvaluations& evaluations, Descent& descent, const LeastSquaresOptions& options)
      : evaluations_(evaluations), at_(descent), options_(options),
        max_nfev_(options.max_nfev.value_or(100 * static_cast<int64_t>(descent.x.size()))) {
    by_columns_ = !options.x_scale.defined();
    weights_ = evaluations.places().spread(options.x_scale, "x_scale", 1);
    for (double& each : weights_) each = 1 / each;
  }

  void run() {
    while (at_.status < 0) {
      at_.jacobian = evaluations_.jacobian(at_.x);
      if (is_stationary()) return;
      const LinearModel model = scaled_model();
      while (at_.status < 0 && !try_step(model)) {
      }
      if (at_.status < 0 && options_.callback && options_.callback(evaluations_.places().tensor_of(at_.x), at_.cost))
        at_.status = -2;
    }
  }

 private:
  // Whether the cosines between f and all columns of J are at most gtol. Also scales x by the norms of the columns.
  bool is_stationary() {
    const double size = norm(at_.f);
    const Vector gradient = transposed_product(at_.jacobian, scaled(at_.f, size == 0 ? 1 : 1 / size));
    double cosine = 0;
    for (size_t j = 0; j < at_.x.size(); ++j) {
      const double length = norm(column(at_.jacobian, j));
      if (length != 0) cosine = std::max(cosine, std::abs(gradient[j]) / length);
      if (by_columns_) weights_[j] = is_first_ ? (length == 0 ? 1 : length) : std::max(weights_[j], length);
    }
    if (is_first_) {
      x_size_ = norm(times(at_.x, weights_));
      radius_ = x_size_ == 0 ? 100 : 100 * x_size_;
    }
    if (cosine <= options_.gtol) at_.status = 1;
    return at_.status >= 0;
  }

  LinearModel scaled_model() const {
    Matrix weighted = at_.jacobian;
    for (size_t i = 0; i < weighted.rows; ++i)
      for (size_t j = 0; j < weighted.columns; ++j) weighted(i, j) /= weights_[j];
    return {weighted, at_.f};
  }

  // Takes a step if it lowers the sum of squares; sets the radius and the status.
  bool try_step(const LinearModel& model) {
    shift_ = shift_for(model, radius_, shift_);
    const Vector step = shift_ == 0 ? model.newton_step() : model.step(shift_);
    const double length = norm(step), size = norm(at_.f);
    if (is_first_) radius_ = std::min(radius_, length);
    Vector x = at_.x;
    for (size_t i = 0; i < x.size(); ++i) x[i] += step[i] / weights_[i];
    Vector f = evaluations_.value(x);
    const double new_size = all_finite(f) ? norm(f) : kInfinity;
    const double fall = 0.1 * new_size < size ? 1 - (new_size / size) * (new_size / size) : -1;
    Vector unscaled = step;
    for (size_t i = 0; i < step.size(); ++i) unscaled[i] /= weights_[i];
    const double linear = norm(product(at_.jacobian, unscaled)) / size, damping = std::sqrt(shift_) * length / size;
    const double predicted = linear * linear + 2 * damping * damping;
    const double ratio = predicted == 0 ? 0 : fall / predicted;
    set_radius(fall, ratio, -(linear * linear + damping * damping), new_size, length);
    const bool is_better = ratio >= 1e-4;
    if (is_better) {
      at_.x = std::move(x);
      at_.f = std::move(f);
      at_.cost = 0.5 * new_size * new_size;
      x_size_ = norm(times(at_.x, weights_));
      is_first_ = false;
    }
    set_status(fall, predicted, ratio);
    return is_better;
  }

  void set_radius(double fall, double ratio, double slope, double new_size, double length) {
    if (ratio <= 0.25) {
      double factor = fall >= 0 ? 0.5 : 0.5 * slope / (slope + 0.5 * fall);
      if (0.1 * new_size >= norm(at_.f) || factor < 0.1) factor = 0.1;
      radius_ = factor * std::min(radius_, length / 0.1);
      shift_ /= factor;
    } else if (shift_ == 0 || ratio >= 0.75) {
      radius_ = length / 0.5;
      shift_ *= 0.5;
    }
  }

  void set_status(double fall, double predicted, double ratio) {
    const bool by_value = std::abs(fall) <= options_.ftol && predicted <= options_.ftol && ratio <= 2;
    const bool by_step = radius_ <= options_.xtol * x_size_;
    const bool at_limit =
        (std::abs(fall) <= kEpsilon && predicted <= kEpsilon && ratio <= 2) || radius_ <= kEpsilon * x_size_;
    if (by_value || by_step) at_.status = by_value ? (by_step ? 4 : 2) : 3;
    else if (evaluations_.values >= max_nfev_) at_.status = 0;
    else if (at_limit) at_.status = 3;
  }

  ResidualEvaluations& evaluations_;
  Descent& at_;
  const LeastSquaresOptions& options_;
  int64_t max_nfev_;
  bool by_columns_, is_first_ = true;
  Vector weights_;  // the trust region is the ball of weights_ * step
  double radius_ = 0, shift_ = 0, x_size_ = 0;
};
}  // namespace

void levenberg_marquardt(ResidualEvaluations& evaluations, Descent& descent, const LeastSquaresOptions& options) {
  DampedSearch(evaluations, descent, options).run();
  descent.jacobian = evaluations.jacobian(descent.x);
}

}  // namespace plugrad::optimize
