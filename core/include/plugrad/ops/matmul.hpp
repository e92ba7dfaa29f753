#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// (.., m, k) x (.., k, n) -> (.., m, n); batch extents broadcast. A vector is taken as (1, k) on the left and (k, 1) on
// the right; the result omits that axis. Floating dtypes. If shapes do not match, throws Error (invalid), which names both.
PLUGRAD_API Tensor matmul(const Tensor& a, const Tensor& b);

}  // namespace plugrad
