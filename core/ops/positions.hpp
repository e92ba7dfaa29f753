// Arithmetic on positions of elements, shared by functions that index by tensors. Nothing here is recorded.
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// The dtype for positions up to `end` on the device of `on`: i64, or f32 if the device computes no integers and f32 holds
// the positions.
DType position_dtype(const Tensor& on, int64_t end);
// The index as i64, for functions without negative indices. Throws Error (index_error) for an element below 0; where the
// check would wait for a device, the op reports the element instead.
Tensor indices_from_start(const char* name, const Tensor& index, int64_t extent);
// The positions (i64, of rank 1) of the true elements of a mask (bool) of rank 1. Waits for the device.
Tensor true_positions(const Tensor& mask);
// For each element of x, in x's shape: its position along an axis.
Tensor coordinates_along(const Tensor& x, int axis, DType dtype);
// The positions of the true elements of a mask of any rank: a tensor for each axis. Waits for the device.
std::vector<Tensor> true_coordinates(const Tensor& mask);

// For each element of an axis: whether an index names it, and the last position in the index that names it.
struct Writers {
  Tensor written;  // bool
  Tensor number;   // i64: the position in index along the axis; 0 where nothing is written
};
// For elements in index's shape, but with this extent along the axis. index: i64, counted from the start. Waits for the
// device, except in a compiled step.
Writers last_writers(const Tensor& index, int axis, int64_t extent);

}  // namespace plugrad
