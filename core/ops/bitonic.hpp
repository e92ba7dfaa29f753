// The decomposition of ARGSORT.
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// argsort of x, which has elements, along axis 0 .. rank - 1. Takes about log2(n)^2 / 2 steps of a few ops each, for lines
// of n elements. Lines of up to 2^22 elements need kernels of f32 only (and of i64, if x is i64 or i32).
Tensor bitonic_argsort(const Tensor& x, int axis, bool descending);

}  // namespace plugrad
