// Reductions by a mask of axes, unrecorded.
#pragma once
#include <core/ops/run.hpp>

namespace plugrad {

// The axes that a caller means, as a mask: all of them where none is given.
unsigned axis_mask(const Shape& axes, int rank, const char* what);
// A shape with extent 1 at the axes of the mask.
Shape kept_shape(const plugrad_view& x, unsigned mask);
// op over the axes of the mask, which stay with extent 1.
Tensor reduce(Op op, const Tensor& x, unsigned mask, uint8_t out_dtype);
// x, whose extents at the mask are 1, without them.
Tensor without_axes(const Tensor& x, unsigned mask);

}  // namespace plugrad
