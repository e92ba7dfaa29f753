// The arithmetic of gradients. Defined with the ops, so that sums of gradients have gradients too.
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

Tensor add_gradients(const Tensor& a, const Tensor& b);
// x summed over the axes along which shape is smaller: the reverse of broadcasting.
Tensor sum_to(const Tensor& x, const Shape& shape);
// Ones of an output of one element.
Tensor gradient_of_one(const Tensor& output);
// A gradient that nobody else holds, dense.
Tensor own(Tensor& grad);

}  // namespace plugrad
