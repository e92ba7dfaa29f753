// What the methods of least_squares() share: evaluations, the loss, and the course of a search.
#pragma once
#include <core/optimize/places.hpp>
#include <core/optimize/vectors.hpp>
#include <plugrad/optimize/least_squares.hpp>

#include <cstdint>
#include <string>

namespace plugrad::optimize {

// The residuals and their Jacobian at vectors; counts evaluations.
class ResidualEvaluations {
 public:
  // The residuals must outlive this.
  ResidualEvaluations(const Residuals& residuals, const Tensor& x0) : residuals_(residuals), places_(x0, "least_squares") {}
  Vector value(const Vector& x);
  Matrix jacobian(const Vector& x);  // after value()
  const Places& places() const { return places_; }
  int64_t values = 0, jacobians = 0;

 private:
  const Residuals& residuals_;
  Places places_;
  size_t count_ = 0;  // of residuals
};

// rho of the residuals: the cost, and what the Gauss-Newton method takes for f and J (Triggs et al., Bundle Adjustment,
// 2000).
class RobustLoss {
 public:
  RobustLoss(Loss kind, double scale) : kind_(kind), scale_(scale) {}
  double cost(const Vector& f) const;  // half the sum of rho
  void scale(Vector& f, Matrix& jacobian) const;

 private:
  struct Rho {
    double value, first, second;  // of z and its derivatives
  };
  Rho rho(double z) const;
  Loss kind_;
  double scale_;
};

// The current point of a search, and why it ended.
struct Descent {
  Vector x, f;
  Matrix jacobian{0, 0};  // without the loss
  double cost = 0;
  int status = -1;  // -1: goes on
};

void levenberg_marquardt(ResidualEvaluations& evaluations, Descent& descent, const LeastSquaresOptions& options);
void trust_region_reflective(ResidualEvaluations& evaluations, Descent& descent, const Box& box,
                             const LeastSquaresOptions& options);

// Coleman and Li's scaling of x within bounds: v = 1, or the distance to the bound in whose direction the gradient falls;
// `slopes` are the derivatives of v: 1, -1 or 0.
struct BoundScaling {
  Vector v, slopes;
};
BoundScaling bound_scaling(const Vector& x, const Vector& gradient, const Box& box);

}  // namespace plugrad::optimize
