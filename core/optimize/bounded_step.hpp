// The step of L-BFGS-B: the minimiser of the quadratic model within the bounds.
#pragma once
#include <core/optimize/lbfgs_matrix.hpp>
#include <core/optimize/places.hpp>
#include <core/optimize/vectors.hpp>

namespace plugrad::optimize {

// Returns the point z in the box to which L-BFGS-B moves from x: z minimises g^T (z - x) + (z - x)^T B (z - x) / 2 over
// the variables that the generalised Cauchy point leaves free. Not finite if the model is singular.
Vector bounded_target(const Vector& x, const Vector& gradient, const LbfgsMatrix& b, const Box& box);

}  // namespace plugrad::optimize
