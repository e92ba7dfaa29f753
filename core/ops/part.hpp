// Parts of tensors by normalised positions, and the reverse: what slices and their gradients are made of.
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// Elements start, start + step, ... (count of them) of one axis.
struct Part {
  int axis;
  int64_t start, count, step;
};

// The part, as a view.
Tensor strided_part(const Tensor& x, const Part& part);
// Zeros of shape `whole`, with x in the part.
Tensor place(const Tensor& x, const Shape& whole, const Part& part);

}  // namespace plugrad
