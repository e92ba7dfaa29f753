// Parts of tensors by normalised positions, and the reverse: what slices and their gradients are made of.
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// Elements start, start + step, ... (count of them) of one axis, as a view.
Tensor strided_part(const Tensor& x, int axis, int64_t start, int64_t count, int64_t step);
// Zeros of shape `whole` with x where strided_part would take it from.
Tensor place(const Tensor& x, const Shape& whole, int axis, int64_t start, int64_t count, int64_t step);

}  // namespace plugrad
