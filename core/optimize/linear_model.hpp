// The linear model of residuals, f + J p, in a trust region.
#pragma once
#include <core/optimize/vectors.hpp>

namespace plugrad::optimize {

// The singular values of J (m, n), and the steps -(J^T J + shift I)^-1 J^T f for any shift.
class LinearModel {
 public:
  LinearModel(const Matrix& jacobian, const Vector& f);
  // Whether J has n singular values that are not negligible.
  bool has_full_rank() const { return full_rank_; }
  const Vector& newton_step() const { return newton_; }
  Vector step(double shift) const;
  // How much longer the step at a shift is than `radius`, and the derivative for the shift.
  struct Excess {
    double value, slope;
  };
  Excess excess(double shift, double radius) const;
  double gradient_norm() const { return norm(scaled_); }  // of J^T f

 private:
  Vector shortest_step() const;
  Vector values_, projections_, scaled_;  // s, U^T f, and s U^T f
  Vector newton_;
  Matrix vectors_;  // V^T
  bool full_rank_;
};

}  // namespace plugrad::optimize
