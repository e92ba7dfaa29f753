#include <core/optimize/lbfgs_matrix.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace plugrad::optimize {

void LbfgsMatrix::add(Vector step, Vector change) {
  if (moves_.size() == most_) moves_.pop_front();
  const double curvature = inner(step, change);
  theta_ = inner(change, change) / curvature;
  moves_.push_back({std::move(step), std::move(change), curvature});
}

void LbfgsMatrix::clear() {
  moves_.clear();
  theta_ = 1;
}

// Nocedal and Wright, Numerical Optimization, 2006, algorithm 7.4.
Vector LbfgsMatrix::inverse_times(const Vector& g) const {
  Vector rest = g, shares(moves_.size());
  for (size_t i = moves_.size(); i-- > 0;) {
    shares[i] = inner(moves_[i].step, rest) / moves_[i].curvature;
    add_scaled(rest, -shares[i], moves_[i].change);
  }
  for (double& each : rest) each /= theta_;
  for (size_t i = 0; i < moves_.size(); ++i)
    add_scaled(rest, shares[i] - inner(moves_[i].change, rest) / moves_[i].curvature, moves_[i].step);
  return rest;
}

Vector LbfgsMatrix::row_of_w(size_t i) const {
  Vector row(2 * moves_.size());
  for (size_t k = 0; k < moves_.size(); ++k) {
    row[k] = moves_[k].change[i];
    row[moves_.size() + k] = theta_ * moves_[k].step[i];
  }
  return row;
}

Vector LbfgsMatrix::w_transposed_times(const Vector& x) const {
  Vector made(2 * moves_.size());
  for (size_t k = 0; k < moves_.size(); ++k) {
    made[k] = inner(moves_[k].change, x);
    made[moves_.size() + k] = theta_ * inner(moves_[k].step, x);
  }
  return made;
}

// The inverse of [[-D, L^T], [L, theta S^T S]]: D are the curvatures, L the lower triangle of S^T Y.
Matrix LbfgsMatrix::middle() const {
  const size_t c = moves_.size();
  Matrix inverse(2 * c, 2 * c), identity(2 * c, 2 * c);
  for (size_t i = 0; i < c; ++i) {
    inverse(i, i) = -moves_[i].curvature;
    for (size_t j = 0; j < c; ++j) {
      inverse(c + i, c + j) = theta_ * inner(moves_[i].step, moves_[j].step);
      if (i > j) inverse(c + i, j) = inverse(j, c + i) = inner(moves_[i].step, moves_[j].change);
    }
  }
  for (size_t i = 0; i < 2 * c; ++i) identity(i, i) = 1;
  return solved(std::move(inverse), std::move(identity));
}

Matrix solved(Matrix a, Matrix b) {
  const size_t n = a.rows;
  for (size_t k = 0; k < n; ++k) {
    size_t pivot = k;
    for (size_t i = k + 1; i < n; ++i)
      if (std::abs(a(i, k)) > std::abs(a(pivot, k))) pivot = i;
    for (size_t j = 0; j < n && pivot != k; ++j) std::swap(a(k, j), a(pivot, j));
    for (size_t j = 0; j < b.columns && pivot != k; ++j) std::swap(b(k, j), b(pivot, j));
    for (size_t i = k + 1; i < n; ++i) {
      const double factor = a(i, k) / a(k, k);
      for (size_t j = k; j < n; ++j) a(i, j) -= factor * a(k, j);
      for (size_t j = 0; j < b.columns; ++j) b(i, j) -= factor * b(k, j);
    }
  }
  for (size_t k = n; k-- > 0;)
    for (size_t j = 0; j < b.columns; ++j) {
      for (size_t i = k + 1; i < n; ++i) b(k, j) -= a(k, i) * b(i, j);
      b(k, j) /= a(k, k);
    }
  return b;
}

}  // namespace plugrad::optimize
