// Nocedal and Wright, Numerical Optimization, 2006, algorithm 6.1.
#include <core/optimize/descent.hpp>
#include <core/optimize/line_search.hpp>

#include <algorithm>
#include <cmath>

namespace plugrad::optimize {
namespace {

// H becomes (I - r s y^T) H (I - r y s^T) + r s s^T.
void update(Matrix& h, const Vector& step, const Vector& change) {
  const double curvature = inner(change, step), r = curvature == 0 ? 1000 : 1 / curvature;
  const Vector hy = product(h, change);
  const double factor = r * (1 + r * inner(change, hy));
  for (size_t i = 0; i < h.rows; ++i)
    for (size_t j = 0; j < h.columns; ++j) h(i, j) += factor * step[i] * step[j] - r * (hy[i] * step[j] + step[i] * hy[j]);
}

// Searches along a direction, and sets `next` to the point where the search ended. before: the value one iteration ago, from
// which the first length follows.
LineResult searched(Evaluations& evaluations, const Point& now, Point& next, const Vector& direction, double before) {
  const double slope = inner(now.gradient, direction), guess = 2.02 * (now.value - before) / slope;
  if (!(slope < 0)) return {{0, now.value, slope}, LineEnd::stuck};
  const auto at = [&](double length) {
    next = evaluations.at(plus(now.x, length, direction));
    return LineTrial{length, next.value, inner(next.gradient, direction)};
  };
  const double first = guess > 0 && std::isfinite(guess) ? std::min(1.0, guess) : 1;
  return line_search(at, {0, now.value, slope}, first, {1e-4, 0.9, 1e-14, 1e-100, 1e100, 100});
}
}  // namespace

void bfgs(Evaluations& evaluations, Course& course, const MinimizeOptions& options) {
  Point& now = course.now;
  const size_t n = now.x.size();
  const int64_t maxiter = options.maxiter.value_or(200 * static_cast<int64_t>(n));
  const double gtol = options.gtol.value_or(1e-5);
  Matrix h(n, n);
  for (size_t i = 0; i < n; ++i) h(i, i) = 1;
  double before = now.value + norm(now.gradient) / 2;
  while (largest(now.gradient) > gtol) {
    if (course.iterations >= maxiter) course.end(1, "STOP: the limit on iterations (maxiter) is reached");
    if (!course.message.empty()) return;
    const Vector direction = scaled(product(h, now.gradient), -1);
    Point next;
    const LineResult found = searched(evaluations, now, next, direction, before);
    if (found.end != LineEnd::satisfied) {
      course.end(2,
                 "STOP: no length along the direction satisfies the Wolfe conditions; the gradient may be imprecise, or "
                 "the function unbounded below");
      return;
    }
    const Vector step = scaled(direction, found.trial.length);
    update(h, step, plus(next.gradient, -1, now.gradient));
    before = now.value;
    now = std::move(next);
    course.count(evaluations, options, maxiter);
    if (course.status != 99 && largest(now.gradient) > gtol && norm(step) <= options.xrtol * (options.xrtol + norm(now.x))) {
      course.end(0, "CONVERGENCE: the step is at most xrtol");
      return;
    }
  }
  if (course.status != 99) course.end(0, "CONVERGENCE: the gradient is at most gtol");
}

}  // namespace plugrad::optimize
