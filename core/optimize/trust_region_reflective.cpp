// Branch, Coleman and Li, 1999; without bounds, a trust region in the variables x / x_scale.
#include <core/optimize/linear_model.hpp>
#include <core/optimize/reflective_step.hpp>
#include <core/optimize/residual_evaluations.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace plugrad::optimize {
namespace {

// The step of the length `radius` to 1 %, or the Gauss-Newton step if it is not longer. Begins with a guess of the shift.
Vector step_within(const LinearModel& model, double radius, double& shift) {
  if (norm(model.newton_step()) <= radius) {
    shift = 0;
    return model.newton_step();
  }
  double low = 0;
  if (model.has_full_rank()) {
    const LinearModel::Excess excess = model.excess(0, radius);
    low = -excess.value / excess.slope;
  }
  double high = model.gradient_norm() / radius;
  const auto inner_guess = [&] { return std::max(0.001 * high, std::sqrt(low * high)); };
  if (!model.has_full_rank() && shift == 0) shift = inner_guess();
  for (int i = 0; i < 10; ++i) {
    if (shift < low || shift > high) shift = inner_guess();
    const LinearModel::Excess excess = model.excess(shift, radius);
    if (excess.value < 0) high = shift;
    const double ratio = excess.value / excess.slope;
    low = std::max(low, shift - ratio);
    shift -= (excess.value + radius) * ratio / radius;
    if (std::abs(excess.value) < 0.01 * radius) break;
  }
  Vector step = model.step(shift);
  return scaled(step, radius / norm(step));
}

class ReflectiveSearch {
 public:
  ReflectiveSearch(ResidualEvaluations& evaluations, Descent& descent, const Box& box, const LeastSquaresOptions& options)
      : evaluations_(evaluations), at_(descent), box_(box), options_(options), loss_(options.loss, options.f_scale),
        is_open_(box.is_open()), max_nfev_(options.max_nfev.value_or(100 * static_cast<int64_t>(descent.x.size()))) {
    scale_ = evaluations.places().spread(options.x_scale, "x_scale", 1);
  }

  void run() {
    linearize();
    radius_ = norm(start_scaled());
    if (radius_ == 0) radius_ = 1;
    while (true) {
      const BoundScaling bounds = bound_scaling(at_.x, gradient_, box_);
      stationarity_ = largest(times(gradient_, bounds.v));
      if (stationarity_ < options_.gtol) at_.status = 1;
      if (at_.status < 0 && evaluations_.values >= max_nfev_) at_.status = 0;
      if (at_.status >= 0) return;
      if (improve(bounds)) linearize();
      if (options_.callback && options_.callback(evaluations_.places().tensor_of(at_.x), at_.cost)) at_.status = -2;
      if (at_.status < -1) return;
    }
  }

 private:
  // Computes J, and with the loss f, J and the gradient of the cost.
  void linearize() {
    at_.jacobian = evaluations_.jacobian(at_.x);
    f_ = at_.f;
    jacobian_ = at_.jacobian;
    loss_.scale(f_, jacobian_);
    gradient_ = transposed_product(jacobian_, f_);
    if (options_.x_scale_by_jacobian) scale_by_columns();
  }

  void scale_by_columns() {
    for (size_t j = 0; j < scale_.size(); ++j) {
      const double length = norm(column(jacobian_, j)), divisor = length == 0 && is_first_ ? 1 : length;
      scale_[j] = is_first_ ? 1 / divisor : std::min(scale_[j], 1 / divisor);
    }
    is_first_ = false;
  }

  // v of the bounds in the variables x / x_scale.
  Vector distances(const BoundScaling& bounds) const {
    Vector v = bounds.v;
    for (size_t i = 0; i < v.size(); ++i)
      if (bounds.slopes[i] != 0) v[i] /= scale_[i];
    return v;
  }

  Vector start_scaled() const {
    const Vector v = distances(bound_scaling(at_.x, gradient_, box_));
    Vector x = at_.x;
    for (size_t i = 0; i < x.size(); ++i) x[i] /= scale_[i] * std::sqrt(v[i]);
    return x;
  }

  // Tries steps until the cost falls; returns whether it did. Sets the status.
  bool improve(const BoundScaling& bounds) {
    Vector scale = distances(bounds), diagonal(scale.size());
    for (size_t i = 0; i < scale.size(); ++i) {
      scale[i] = std::sqrt(scale[i]) * scale_[i];
      diagonal[i] = gradient_[i] * bounds.slopes[i] * scale_[i];
    }
    const ScaledModel model{scaled_jacobian(scale), times(gradient_, scale), diagonal};
    const LinearModel linear = is_open_ ? LinearModel(model.jacobian, f_) : augmented(model);
    while (at_.status < 0 && evaluations_.values < max_nfev_)
      if (try_step(linear, model, scale)) return true;
    return false;
  }

  Matrix scaled_jacobian(const Vector& scale) const {
    Matrix made = jacobian_;
    for (size_t i = 0; i < made.rows; ++i)
      for (size_t j = 0; j < made.columns; ++j) made(i, j) *= scale[j];
    return made;
  }

  // J with the rows of the root of the diagonal below, and f with zeros.
  LinearModel augmented(const ScaledModel& model) const {
    const size_t m = jacobian_.rows, n = jacobian_.columns;
    Matrix whole(m + n, n);
    std::ranges::copy(model.jacobian.elements, whole.elements.begin());
    for (size_t i = 0; i < n; ++i) whole(m + i, i) = std::sqrt(model.diagonal[i]);
    Vector f = f_;
    f.resize(m + n);
    return {whole, f};
  }

  bool try_step(const LinearModel& linear, const ScaledModel& model, const Vector& scale) {
    const Vector p = step_within(linear, radius_, shift_);
    const double theta = std::max(0.995, 1 - stationarity_);
    const ReflectiveStep step = reflective_step(model, at_.x, scale, p, radius_, box_, theta);
    Vector x = plus(at_.x, 1, step.step);
    if (!is_open_) x = inside(std::move(x), box_, 0);
    Vector f = evaluations_.value(x);
    const double length = norm(step.scaled_step);
    if (!all_finite(f)) {
      radius_ = 0.25 * length;
      return false;
    }
    const double cost = loss_.cost(f), fall = at_.cost - cost;
    const double ratio = step.reduction > 0 ? fall / step.reduction : (step.reduction == 0 && fall == 0 ? 1 : 0);
    const double before = radius_;
    if (ratio < 0.25) radius_ = 0.25 * length;
    else if (ratio > 0.75 && length > 0.95 * radius_) radius_ *= 2;
    const bool by_value = fall < options_.ftol * at_.cost && ratio > 0.25;
    const bool by_step = norm(step.step) < options_.xtol * (options_.xtol + norm(at_.x));
    if (by_value || by_step) at_.status = by_value ? (by_step ? 4 : 2) : 3;
    else shift_ *= before / radius_;
    if (!(fall > 0)) return false;
    at_.x = std::move(x);
    at_.f = std::move(f);
    at_.cost = cost;
    return true;
  }

  ResidualEvaluations& evaluations_;
  Descent& at_;
  const Box& box_;
  const LeastSquaresOptions& options_;
  RobustLoss loss_;
  bool is_open_, is_first_ = true;
  int64_t max_nfev_;
  Vector scale_, f_, gradient_;
  Matrix jacobian_{0, 0};
  double radius_ = 0, shift_ = 0, stationarity_ = 0;
};
}  // namespace

void trust_region_reflective(ResidualEvaluations& evaluations, Descent& descent, const Box& box,
                             const LeastSquaresOptions& options) {
  ReflectiveSearch(evaluations, descent, box, options).run();
}

}  // namespace plugrad::optimize
