// Byrd, Lu, Nocedal and Zhu, A Limited Memory Algorithm for Bound Constrained Optimization, 1995.
#include <core/optimize/bounded_step.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace plugrad::optimize {
namespace {

// The first minimum of the model along the projected direction of steepest descent, and W^T (point - x).
struct CauchyPoint {
  Vector point, w_step;
};

// The length along -gradient at which an element reaches its bound.
double break_of(double x, double gradient, double lower, double upper) {
  if (gradient == 0) return kInfinity;
  return (x - (gradient < 0 ? upper : lower)) / gradient;
}

// Algorithm CP.
class CauchySearch {
 public:
  CauchySearch(const Vector& x, const Vector& gradient, const LbfgsMatrix& b, const Matrix& middle, const Box& box)
      : x_(x), gradient_(gradient), b_(b), middle_(middle), box_(box) {}

  CauchyPoint run() {
    const std::vector<std::pair<double, size_t>> breaks = start();
    double past = 0, slope = -inner(direction_, direction_), curvature = -b_.theta() * slope;
    curvature -= inner(p_, product(middle_, p_));
    const double least = kEpsilon * curvature;
    double best = -slope / curvature;
    for (const auto& [length, i] : breaks) {
      const double by = length - past;
      if (best < by) break;
      pass(i, by, slope, curvature);
      curvature = std::max(curvature, least);
      best = -slope / curvature;
      past = length;
    }
    best = std::isfinite(best) ? std::max(best, 0.0) : 0;
    for (size_t i = 0; i < x_.size(); ++i)
      if (direction_[i] != 0) point_[i] = x_[i] + (past + best) * direction_[i];
    add_scaled(c_, best, p_);
    return {std::move(point_), std::move(c_)};
  }

 private:
  std::vector<std::pair<double, size_t>> start() {
    std::vector<std::pair<double, size_t>> breaks;
    point_ = x_;
    direction_.assign(x_.size(), 0);
    for (size_t i = 0; i < x_.size(); ++i) {
      const double at = break_of(x_[i], gradient_[i], box_.lower[i], box_.upper[i]);
      if (at <= 0) continue;
      direction_[i] = -gradient_[i];
      if (std::isfinite(at)) breaks.emplace_back(at, i);
    }
    std::sort(breaks.begin(), breaks.end());
    p_ = b_.w_transposed_times(direction_);
    c_.assign(p_.size(), 0);
    return breaks;
  }

  // Moves by a length to the bound of element i, which then stays there.
  void pass(size_t i, double by, double& slope, double& curvature) {
    const double g = gradient_[i], theta = b_.theta();
    point_[i] = direction_[i] > 0 ? box_.upper[i] : box_.lower[i];
    const double moved = point_[i] - x_[i];
    add_scaled(c_, by, p_);
    const Vector row = b_.row_of_w(i), m_row = product(middle_, row);
    slope += by * curvature + g * g + theta * g * moved - g * inner(m_row, c_);
    curvature -= theta * g * g + 2 * g * inner(m_row, p_) + g * g * inner(row, m_row);
    add_scaled(p_, g, row);
    direction_[i] = 0;
  }

  const Vector &x_, &gradient_;
  const LbfgsMatrix& b_;
  const Matrix& middle_;
  const Box& box_;
  Vector point_, direction_, p_, c_;
};

// The step from the Cauchy point to the minimiser over the free elements: section 5.1, the direct primal method.
Vector subspace_step(const Vector& reduced, const std::vector<size_t>& free, const LbfgsMatrix& b, const Matrix& middle) {
  const size_t size = middle.rows;
  const double theta = b.theta();
  Matrix rows(free.size(), size);
  for (size_t i = 0; i < free.size(); ++i) {
    const Vector row = b.row_of_w(free[i]);
    std::copy(row.begin(), row.end(), rows.elements.begin() + static_cast<std::ptrdiff_t>(i * size));
  }
  Matrix n(size, size);
  Matrix squares(size, size);
  for (size_t i = 0; i < free.size(); ++i)
    for (size_t j = 0; j < size; ++j)
      for (size_t k = 0; k < size; ++k) squares(j, k) += rows(i, j) * rows(i, k) / theta;
  for (size_t j = 0; j < size; ++j)
    for (size_t k = 0; k < size; ++k) {
      n(j, k) = j == k ? 1 : 0;
      for (size_t l = 0; l < size; ++l) n(j, k) -= middle(j, l) * squares(l, k);
    }
  const Vector v = product(middle, transposed_product(rows, reduced));
  const Vector inner_part = solved(std::move(n), {size, 1, v}).elements;
  Vector step = scaled(reduced, -1 / theta);
  add_scaled(step, -1 / (theta * theta), product(rows, inner_part));
  return step;
}
}  // namespace

Vector bounded_target(const Vector& x, const Vector& gradient, const LbfgsMatrix& b, const Box& box) {
  const Matrix middle = b.middle();
  const auto [cauchy, w_step] = CauchySearch(x, gradient, b, middle, box).run();
  std::vector<size_t> free;
  for (size_t i = 0; i < x.size(); ++i)
    if (cauchy[i] > box.lower[i] && cauchy[i] < box.upper[i]) free.push_back(i);
  if (free.empty() || b.moves() == 0) return cauchy;
  const Vector m_step = product(middle, w_step);
  Vector reduced(free.size());
  for (size_t i = 0; i < free.size(); ++i) {
    const size_t at = free[i];
    reduced[i] = gradient[at] + b.theta() * (cauchy[at] - x[at]) - inner(b.row_of_w(at), m_step);
  }
  const Vector step = subspace_step(reduced, free, b, middle);
  // Morales and Nocedal, 2011: the projected point, if it is downhill from x; else the step ends at the first bound.
  Vector projected = cauchy;
  double length = 1;
  for (size_t i = 0; i < free.size(); ++i) {
    const size_t at = free[i];
    projected[at] = std::clamp(cauchy[at] + step[i], box.lower[at], box.upper[at]);
    const double room = (step[i] > 0 ? box.upper[at] : box.lower[at]) - cauchy[at];
    if (step[i] != 0 && std::isfinite(room)) length = std::min(length, room / step[i]);
  }
  if (inner(plus(projected, -1, x), gradient) <= 0) return projected;
  Vector target = cauchy;
  for (size_t i = 0; i < free.size(); ++i) target[free[i]] += length * step[i];
  return target;
}

}  // namespace plugrad::optimize
