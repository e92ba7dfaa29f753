#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// (.., m, k) x (.., k, n) -> (.., m, n); batch extents broadcast. A vector is taken as (1, k) on the left and (k, 1) on
// the right; the result omits the added axis. Operands of two dtypes are promoted as in add;
// integers wrap, and take k passes over the result. Throws Error (invalid) with both shapes.
PLUGRAD_API Tensor matmul(const Tensor& a, const Tensor& b);

}  // namespace plugrad
