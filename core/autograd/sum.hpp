// The arithmetic of gradients. It is recorded like other ops, so that gradients can be differentiated again.
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// a + b, whose shapes are equal.
Tensor add_gradients(const Tensor& a, const Tensor& b);
// A view of x in a larger shape, by stride 0. The caller knows that x broadcasts to it.
Tensor expand_to(const Tensor& x, const Shape& shape);
// x summed over the axes along which shape is smaller: the reverse of expand_to.
Tensor sum_to(const Tensor& x, const Shape& shape);
// A tensor of like's shape, dtype and device with this value in every element; unrecorded.
Tensor filled_like(const Tensor& like, int value);
// Returns grad itself if it is dense and nobody else holds it, else a dense copy.
Tensor own(Tensor& grad);

}  // namespace plugrad
