// Strided parts of tensors, by normalised positions, and the reverse. Slices and their gradients use them.
#pragma once
#include <plugrad/sdk/abi.h>
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// Elements start, start + step, ... (count of them) of one axis.
struct Part {
  int axis;
  int64_t start, count, step;
};

// The view of a part. The caller sets its layout.
plugrad_view sliced(const plugrad_view& x, const Part& part);
// Returns the part as a view.
Tensor strided_part(const Tensor& x, const Part& part);
// Returns zeros of shape `whole` with x copied into the part.
Tensor place(const Tensor& x, const Shape& whole, const Part& part);

}  // namespace plugrad
