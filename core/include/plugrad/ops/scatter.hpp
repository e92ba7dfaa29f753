// Writes at index along an axis: each element of src goes to out[.., index[.., i, ..], ..]. index is of an integer dtype.
// It has the rank of x and of src, is not larger than src, and, except along the axis, not larger than x. src has x's dtype.
// A tensor of rank 0 counts as a tensor of rank 1. A negative or too large index is an Error (index_error); some devices
// report it later.
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// A copy of x with src at index. The last of several elements for the same place is kept, and only the kept element has a
// gradient. x has gradient 0 where it is replaced.
PLUGRAD_API Tensor scatter(const Tensor& x, int axis, const Tensor& index, const Tensor& src);
PLUGRAD_API Tensor scatter(const Tensor& x, int axis, const Tensor& index, Number value);

enum class ScatterReduction { sum, prod, mean, amax, amin };
// A copy of x whose elements are joined with src's elements at index. include_self: x's elements take part; else x's
// elements are kept only where no index names them. The mean of integers is rounded down. All elements equal to the largest
// or the smallest share its gradient equally. As in PyTorch, an equal element of x that does not take part has a share too,
// and this share is lost. Throws Error (invalid) for bools. prod, amax and amin wait for the device.
PLUGRAD_API Tensor scatter_reduce(const Tensor& x, int axis, const Tensor& index, const Tensor& src, ScatterReduction reduce,
                                  bool include_self = true);
// The same for whole slices: element i of source along the axis is joined with element index[i] of x. index has rank 1, and
// source has x's shape but with index's extent along the axis.
PLUGRAD_API Tensor index_reduce(const Tensor& x, int axis, const Tensor& index, const Tensor& source,
                                ScatterReduction reduce, bool include_self = true);

}  // namespace plugrad
