#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// Returns the product (.., m, k) x (.., k, n) -> (.., m, n); batch extents broadcast. A vector counts as (1, k) on the left
// and as (k, 1) on the right, and the result omits the added axis. Operands of two dtypes are promoted as in add; integers
// wrap, and take k passes over the result. Throws Error (invalid) with both shapes if they do not fit.
PLUGRAD_API Tensor matmul(const Tensor& a, const Tensor& b);

}  // namespace plugrad
