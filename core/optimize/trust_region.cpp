// Trust-region methods with second derivatives.
#include <core/optimize/descent.hpp>
#include <plugrad/ops/linalg.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace plugrad::optimize {
namespace {

// A step within the trust region; reduction: by how much the model falls.
struct Step {
  Vector step;
  bool is_at_boundary;
  double reduction;
};

// Nocedal and Wright, Numerical Optimization, 2006, algorithm 7.2 (Steihaug).
class ConjugateGradients {
 public:
  ConjugateGradients(Evaluations& evaluations, const Point& now) : evaluations_(evaluations), now_(now) {}

  Step run(double radius) const {
    const double size = norm(now_.gradient), tolerance = std::min(0.5, std::sqrt(size)) * size;
    Vector step(now_.x.size()), rest = now_.gradient, direction = scaled(rest, -1);
    if (norm(rest) < tolerance) return ended(std::move(step), false);
    while (true) {
      const Vector product = evaluations_.hessian_product(now_.x, direction);
      const double curvature = inner(direction, product), square = inner(rest, rest);
      if (!(curvature > 0)) return ended(plus(step, length_to_sphere(step, direction, radius), direction), true);
      const double length = square / curvature;
      Vector next = plus(step, length, direction);
      if (norm(next) >= radius) return ended(plus(step, length_to_sphere(step, direction, radius), direction), true);
      add_scaled(rest, length, product);
      step = std::move(next);
      if (norm(rest) < tolerance) return ended(std::move(step), false);
      direction = plus(scaled(rest, -1), inner(rest, rest) / square, direction);
    }
  }

 private:
  Step ended(Vector step, bool is_at_boundary) const {
    const Vector product = evaluations_.hessian_product(now_.x, step);
    const double reduction = -inner(now_.gradient, step) - 0.5 * inner(step, product);
    return {std::move(step), is_at_boundary, reduction};
  }
  Evaluations& evaluations_;
  const Point& now_;
};

// Section 4.3, in the basis of the Hessian's eigenvectors: the step -(H + shift I)^-1 g.
class Eigenbasis {
 public:
  Eigenbasis(const Matrix& hessian, const Vector& gradient) : vectors_(hessian.rows, hessian.rows) {
    Matrix symmetric = hessian;
    for (size_t i = 0; i < symmetric.rows; ++i)
      for (size_t j = 0; j < i; ++j) symmetric(i, j) = 0.5 * (hessian(i, j) + hessian(j, i));
    const linalg::Eigh factors = linalg::eigh(factorable(symmetric));
    values_ = elements_of(factors.eigenvalues);
    vectors_.elements = elements_of(factors.eigenvectors);
    gradient_ = transposed_product(vectors_, gradient);
  }

  Step run(double radius) const {
    const double lowest = values_.front();
    if (lowest > 0) {
      Vector newton = at(0);
      if (norm(newton) <= radius) return ended(std::move(newton), false);
    }
    // The shift lies between these two limits: the norm of the step falls from infinity, or from the hard case's, to 0.
    double low = std::max(0.0, -lowest), high = low + norm(gradient_) / radius;
    Vector step = at(low + kEpsilon * std::max(1.0, std::abs(lowest)));
    if (lowest <= 0 && norm(step) < radius) return ended(with_lowest(std::move(step), radius), true);
    for (int i = 0; i < 200 && high - low > 4 * kEpsilon * high; ++i) {
      const double middle = 0.5 * (low + high);
      (norm(at(middle)) > radius ? low : high) = middle;
    }
    return ended(at(high), true);
  }

 private:
  Vector at(double shift) const {
    Vector step(values_.size());
    for (size_t i = 0; i < step.size(); ++i) step[i] = gradient_[i] == 0 ? 0 : -gradient_[i] / (values_[i] + shift);
    return step;
  }
  // The hard case: goes on along the eigenvector of the lowest eigenvalue, to the boundary.
  static Vector with_lowest(Vector step, double radius) {
    Vector direction(step.size());
    direction[0] = 1;
    add_scaled(step, length_to_sphere(step, direction, radius), direction);
    return step;
  }
  Step ended(Vector step, bool is_at_boundary) const {
    const double reduction = -inner(gradient_, step) - 0.5 * inner(step, times(step, values_));
    return {product(vectors_, step), is_at_boundary, reduction};
  }
  Matrix vectors_;
  Vector values_, gradient_;
};
}  // namespace

// Algorithm 4.1.
void trust_region(Evaluations& evaluations, Course& course, const MinimizeOptions& options, bool exact) {
  Point& now = course.now;
  const double gtol = options.gtol.value_or(1e-4);
  const int64_t maxiter = options.maxiter.value_or(200 * static_cast<int64_t>(now.x.size()));
  double radius = options.initial_trust_radius;
  std::optional<Eigenbasis> basis;
  while (true) {
    if (norm(now.gradient) < gtol) {
      course.end(0, "CONVERGENCE: the gradient is below gtol");
      return;
    }
    if (!course.message.empty()) return;
    if (exact && !basis) basis.emplace(evaluations.hessian(now.x), now.gradient);
    const Step step = exact ? basis->run(radius) : ConjugateGradients(evaluations, now).run(radius);
    if (!(step.reduction > 0)) {
      course.end(2, "STOP: the quadratic model does not fall");
      return;
    }
    Point next = evaluations.at(plus(now.x, 1, step.step));
    const bool is_finite = std::isfinite(next.value) && all_finite(next.gradient);
    const double ratio = is_finite ? (now.value - next.value) / step.reduction : -1;
    if (ratio < 0.25) radius *= 0.25;
    else if (ratio > 0.75 && step.is_at_boundary) radius = std::min(2 * radius, options.max_trust_radius);
    if (ratio > options.eta) {
      now = std::move(next);
      basis.reset();
    }
    if (radius < kEpsilon * kEpsilon) {
      course.end(2, "STOP: the trust region has vanished; the gradient may be imprecise");
      return;
    }
    course.count(evaluations, options, maxiter);
  }
}

}  // namespace plugrad::optimize
