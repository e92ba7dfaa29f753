// Operands of functions that write at an index along an axis.
#pragma once
#include <core/ops/replace.hpp>
#include <core/ops/slicing.hpp>

namespace plugrad {

// The part of a tensor from its first element on, with these extents.
struct Corner {
  Shape extents;
  Tensor operator()(const Tensor& x) const;
};

// The part of x within reach of index, the axis, and the index counted from the start.
struct ScatterTarget {
  Tensor part;
  int axis;
  Tensor index;
  Corner corner;
};

// scatter_target and scatter_source throw Error (invalid) with the function's name for operands that do not fit.
ScatterTarget scatter_target(const char* name, const Tensor& x, int axis, const Tensor& index);
// The written part of src.
Tensor scatter_source(const char* name, const Tensor& x, const Tensor& index, const Tensor& src);
// x with the target's part replaced.
Tensor with_target(const Tensor& x, const ScatterTarget& target, const Tensor& part);
// Zeros of a shape with source added at index along the axis. index is i64, has source's shape, and fits the shape.
Tensor scatter_sum(const Shape& shape, int axis, const Tensor& index, const Tensor& source);
// x, of rank 1 at least.
Tensor as_line(const Tensor& x);

}  // namespace plugrad
