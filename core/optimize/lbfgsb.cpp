#include <core/optimize/bounded_step.hpp>
#include <core/optimize/descent.hpp>
#include <core/optimize/lbfgs_matrix.hpp>
#include <core/optimize/line_search.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace plugrad::optimize {
namespace {

// The largest element of the step from x to the projection of x - gradient.
double projected_norm(const Point& at, const Box& box) {
  double most = 0;
  for (size_t i = 0; i < at.x.size(); ++i) {
    const double g = at.gradient[i];
    const double step = g < 0 ? std::max(at.x[i] - box.upper[i], g) : std::min(at.x[i] - box.lower[i], g);
    most = std::max(most, std::abs(step));
  }
  return most;
}

// The largest length along a direction within the box.
double room_along(const Vector& x, const Vector& direction, const Box& box) {
  double most = 1e10;
  for (size_t i = 0; i < x.size(); ++i) {
    const double bound = direction[i] < 0 ? box.lower[i] : box.upper[i];
    if (direction[i] != 0 && std::isfinite(bound)) most = std::min(most, std::max(0.0, (bound - x[i]) / direction[i]));
  }
  return most;
}

class BoundedSearch {
 public:
  BoundedSearch(Evaluations& evaluations, Course& course, const Box& box, const MinimizeOptions& options)
      : evaluations_(evaluations), course_(course), box_(box), options_(options), is_open_(box.is_open()),
        matrix_(static_cast<size_t>(options.maxcor)) {
    is_boxed_ = std::ranges::all_of(box.lower, [](double x) { return std::isfinite(x); }) &&
                std::ranges::all_of(box.upper, [](double x) { return std::isfinite(x); });
  }

  void run() {
    const double gtol = options_.gtol.value_or(1e-5);
    if (projected_norm(course_.now, box_) <= gtol) {
      course_.end(0, "CONVERGENCE: the projected gradient is at most gtol");
      return;
    }
    const int64_t maxiter = options_.maxiter.value_or(15000);
    while (true) {
      const Point before = course_.now;
      const Vector target = next_target();
      const Vector direction = plus(target, -1, before.x);
      if (!all_finite(direction) || !moves_along(direction, target)) {
        if (!restart()) return;
        continue;
      }
      const bool is_last = course_.count(evaluations_, options_, maxiter);
      if (is_at_end(before, gtol) || is_last) return;
      add_move(before, direction);
    }
  }

 private:
  Vector next_target() const {
    const Point& now = course_.now;
    if (is_open_) return plus(now.x, -1, matrix_.inverse_times(now.gradient));
    return bounded_target(now.x, now.gradient, matrix_, box_);
  }

  // Moves along the direction to a better point; returns whether there was one.
  bool moves_along(const Vector& direction, const Vector& target) {
    const Point& now = course_.now;
    const double slope = inner(now.gradient, direction);
    if (!(slope < 0)) return false;
    double most = 1e10, first = 1;
    if (!is_open_) most = course_.iterations == 0 ? 1 : room_along(now.x, direction, box_);
    if (course_.iterations == 0 && !is_boxed_) first = std::min(1 / norm(direction), most);
    Point next;
    const auto at = [&](double length) {
      Vector x = length == 1 ? target : plus(now.x, length, direction);
      for (size_t i = 0; i < x.size(); ++i) x[i] = std::clamp(x[i], box_.lower[i], box_.upper[i]);
      next = evaluations_.at(std::move(x));
      return LineTrial{length, next.value, inner(next.gradient, direction)};
    };
    const LineLimits limits{1e-3, 0.9, 0.1, 0, most, options_.maxls};
    const LineResult found = line_search(at, {0, now.value, slope}, std::min(first, most), limits);
    if (found.end == LineEnd::exhausted || !std::isfinite(next.value)) return false;
    length_ = found.trial.length;
    slope_before_ = slope * length_;
    slope_after_ = found.trial.slope * length_;
    course_.now = std::move(next);
    return true;
  }

  // After a failed line search: forgets the moves; returns false, at the end of the search, if there are none.
  bool restart() {
    if (matrix_.moves() == 0) {
      course_.end(2, "ABNORMAL: no length along the direction lowers the value; the gradient may be imprecise");
      return false;
    }
    if (evaluations_.values > options_.maxfun) {
      course_.end(1, "STOP: the limit on evaluations (maxfun) is reached");
      return false;
    }
    matrix_.clear();
    return true;
  }

  bool is_at_end(const Point& before, double gtol) {
    const Point& now = course_.now;
    if (course_.status == 99) return true;
    if (projected_norm(now, box_) <= gtol) return course_.end(0, "CONVERGENCE: the projected gradient is at most gtol");
    const double scale = std::max({std::abs(before.value), std::abs(now.value), 1.0});
    if (before.value - now.value <= options_.ftol * scale)
      return course_.end(0, "CONVERGENCE: the value falls by at most ftol");
    if (course_.status == 0 && evaluations_.values > options_.maxfun)
      return course_.end(1, "STOP: the limit on evaluations (maxfun) is reached");
    return false;
  }

  // Keeps a move whose curvature is positive.
  void add_move(const Point& before, const Vector& direction) {
    if (slope_after_ - slope_before_ <= kEpsilon * -slope_before_) return;
    Vector step = scaled(direction, length_), change = plus(course_.now.gradient, -1, before.gradient);
    if (inner(step, change) > 0) matrix_.add(std::move(step), std::move(change));
  }

  Evaluations& evaluations_;
  Course& course_;
  const Box& box_;
  const MinimizeOptions& options_;
  bool is_open_, is_boxed_;
  LbfgsMatrix matrix_;
  double length_ = 0, slope_before_ = 0, slope_after_ = 0;  // of the last move
};
}  // namespace

void lbfgsb(Evaluations& evaluations, Course& course, const Box& box, const MinimizeOptions& options) {
  BoundedSearch(evaluations, course, box, options).run();
}

}  // namespace plugrad::optimize
