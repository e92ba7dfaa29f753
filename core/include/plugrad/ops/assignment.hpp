// Writes into a part of a tensor.
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// Broadcasts and casts source and writes it into part, a view of x made while recording was off. x and part must be distinct
// handles.
//
// While recording, x becomes the result of the write if x is the result of an op or source requires a gradient: the gradient
// of x goes to source inside the part, and to the former x outside. Throws Error (invalid) if x is a leaf that requires a
// gradient, if x is not contiguous, or if further tensors share the memory of x.
PLUGRAD_API void assign(Tensor& x, const Tensor& part, const Tensor& source);
PLUGRAD_API void assign(Tensor& x, const Tensor& part, Number value);

}  // namespace plugrad
