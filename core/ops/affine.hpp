#pragma once
#include <core/tensor/impl.hpp>

namespace plugrad {

// x (m, k) times the transpose of weight (n, k), plus bias (n) or () unless it is undefined. The gradient of weight is
// computed in weight's layout. Throws Error (invalid) as matmul does.
Tensor affine(const Tensor& x, const Tensor& weight, const Tensor& bias);

}  // namespace plugrad
