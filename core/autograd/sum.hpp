// The arithmetic of gradients. It is recorded like any other, so that gradients can be differentiated again.
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// a + b, of equal shapes.
Tensor add_gradients(const Tensor& a, const Tensor& b);
// x with a larger shape, by stride 0. The caller knows that it fits.
Tensor expand_to(const Tensor& x, const Shape& shape);
// x summed over the axes along which shape is smaller: the reverse of expand_to.
Tensor sum_to(const Tensor& x, const Shape& shape);
// Ones of an output of one element.
Tensor gradient_of_one(const Tensor& output);
// A gradient that nobody else holds, dense.
Tensor own(Tensor& grad);

}  // namespace plugrad
