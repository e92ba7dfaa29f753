// Pieces of normalisations over the channels of x (n, c, ..).
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// Throws Error (invalid) if x is defined and has another shape. role: the name of x in the message.
void require_shape(const char* name, const char* role, const Tensor& x, const Shape& shape);
// Throws Error (invalid) unless x is floating and has channels, and weight and bias are undefined or have one element each.
void require_channels(const char* name, const Tensor& x, const Tensor& weight, const Tensor& bias);
// Returns (c, 1, 1, ..), for broadcasting along the channels of x.
Shape channel_shape(const Tensor& x);
// Returns y times weight plus bias in this dtype. weight and bias are reshaped to `shape`; undefined: left out.
Tensor scaled(Tensor y, const Tensor& weight, const Tensor& bias, const Shape& shape, DType dtype);
// Moves running, unless undefined, in place towards value by the fraction momentum.
void move_towards(Tensor running, const Tensor& value, double momentum);

}  // namespace plugrad
