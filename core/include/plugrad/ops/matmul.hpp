#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// (.., m, k) x (.., k, n) -> (.., m, n); batch extents broadcast. A vector counts as (1, k) on the left and (k, 1) on the
// right, and that extent is dropped again. Floating dtypes. Throws Error (invalid) naming both shapes.
PLUGRAD_API Tensor matmul(const Tensor& a, const Tensor& b);

}  // namespace plugrad
