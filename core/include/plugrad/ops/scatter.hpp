// Writes at index along an axis: each element of src goes to out[.., index[.., i, ..], ..]. index has an integer dtype and
// the rank of x and of src; it is not larger than src and, except along the axis, not larger than x. src has x's dtype. A
// tensor of rank 0 counts as a tensor of rank 1. A negative or too large index is an Error (index_error); some devices
// report it later.
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// Returns a copy of x with src at index. Of several elements for the same position the last is kept, and only the kept
// element has a gradient. The gradient of x is 0 where x is replaced.
PLUGRAD_API Tensor scatter(const Tensor& x, int axis, const Tensor& index, const Tensor& src);
PLUGRAD_API Tensor scatter(const Tensor& x, int axis, const Tensor& index, Number value);

enum class ScatterReduction { sum, prod, mean, amax, amin };
// Returns a copy of x in which elements are reduced with src's elements at index. include_self: x's elements take part;
// without include_self x's elements are kept only where no index names them. The mean of integers is rounded down. All
// elements equal to the largest or the smallest share the gradient equally. As in PyTorch, an equal element of x that does
// not take part has a share too, and this share is lost. Throws Error (invalid) for bools. prod, amax and amin wait for the
// device.
PLUGRAD_API Tensor scatter_reduce(const Tensor& x, int axis, const Tensor& index, const Tensor& src, ScatterReduction reduce,
                                  bool include_self = true);
// Reduces whole slices as scatter_reduce reduces elements: element i of source along the axis is reduced with element
// index[i] of x. index has rank 1, and source has x's shape but with index's extent along the axis.
PLUGRAD_API Tensor index_reduce(const Tensor& x, int axis, const Tensor& index, const Tensor& source,
                                ScatterReduction reduce, bool include_self = true);

}  // namespace plugrad
