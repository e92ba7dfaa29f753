// Steps of the reflective trust region: within the bounds, in variables that are scaled by the distance to the bounds.
#pragma once
#include <core/optimize/places.hpp>
#include <core/optimize/vectors.hpp>

namespace plugrad::optimize {

// The quadratic model |J p|^2 / 2 + g^T p + p^T diag(d) p / 2 of the cost, in scaled variables p = step / scale.
struct ScaledModel {
  Matrix jacobian;
  Vector gradient, diagonal;
  double value(const Vector& p) const;
};

// A step in x and in scaled variables; reduction: by how much the model falls.
struct ReflectiveStep {
  Vector step, scaled_step;
  double reduction;
};

// Returns the best of three steps within the bounds: towards p, cut at the bound; that step with a reflection at the bound;
// and one along the negative gradient. theta: the part of the way to a bound that a step may take. Branch, Coleman and Li, A
// Subspace, Interior, and Conjugate Gradient Method for Large-Scale Bound-Constrained Minimization Problems, 1999.
ReflectiveStep reflective_step(const ScaledModel& model, const Vector& x, const Vector& scale, const Vector& p,
                               double radius, const Box& box, double theta);

// Moves x into the interior of the box: from a bound by `by` times max(1, |bound|), or to the next number if `by` is 0.
Vector inside(Vector x, const Box& box, double by);

}  // namespace plugrad::optimize
