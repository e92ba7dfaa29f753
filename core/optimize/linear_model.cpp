#include <core/optimize/linear_model.hpp>

#include <core/optimize/places.hpp>
#include <plugrad/ops/linalg.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/views.hpp>

#include <algorithm>
#include <cmath>

namespace plugrad::optimize {

// Factors J as Q R first: R has J's singular values, and the Gauss-Newton step by R is more precise.
LinearModel::LinearModel(const Matrix& jacobian, const Vector& f) : vectors_(0, 0) {
  Tensor j = factorable(jacobian);
  Tensor right = reshape(Tensor::from(f, {static_cast<int64_t>(f.size())}, j.device()), {-1, 1});
  const bool is_tall = jacobian.rows >= jacobian.columns;
  if (is_tall) {
    const linalg::Qr factors = linalg::qr(j);
    right = matmul(transpose(factors.q), right);
    j = factors.r;
  }
  const linalg::Svd factors = linalg::svd(j, false);
  values_ = elements_of(factors.s);
  projections_ = elements_of(matmul(transpose(factors.u), right));
  vectors_ = {values_.size(), jacobian.columns, elements_of(factors.vh)};
  scaled_ = times(values_, projections_);
  const double negligible = kEpsilon * static_cast<double>(jacobian.rows) * values_.front();
  full_rank_ = is_tall && values_.back() > negligible;
  newton_ = full_rank_ ? scaled(elements_of(linalg::solve_triangular(j, right, true)), -1) : shortest_step();
}

// Without full rank, the shortest of all Gauss-Newton steps.
Vector LinearModel::shortest_step() const {
  const double negligible = kEpsilon * static_cast<double>(vectors_.columns) * values_.front();
  Vector shares(values_.size());
  for (size_t i = 0; i < shares.size(); ++i) shares[i] = values_[i] > negligible ? -projections_[i] / values_[i] : 0;
  return transposed_product(vectors_, shares);
}

Vector LinearModel::step(double shift) const {
  Vector shares(values_.size());
  for (size_t i = 0; i < shares.size(); ++i) shares[i] = -scaled_[i] / (values_[i] * values_[i] + shift);
  return transposed_product(vectors_, shares);
}

LinearModel::Excess LinearModel::excess(double shift, double radius) const {
  double square = 0, cubes = 0;
  for (size_t i = 0; i < values_.size(); ++i) {
    const double divisor = values_[i] * values_[i] + shift, share = scaled_[i] / divisor;
    if (scaled_[i] == 0) continue;
    square += share * share;
    cubes += share * share / divisor;
  }
  const double length = std::sqrt(square);
  return {length - radius, length > 0 ? -cubes / length : 0};
}

}  // namespace plugrad::optimize
