// Products of integers, exact in i32.
#pragma once
#include <core/io/onnx/operator.hpp>

namespace plugrad::io::onnx {

// The numbers of inputs: a tensor of uint8 or int8 and its zero point.
struct IntegerInput {
  size_t tensor, zero;
};
// (a - a's zero point) times (b - b's zero point), i32. a's zero point may be one number or one for each row, b's one number
// or one for each column. transposed: b holds its transpose.
Tensor integer_product(const Call& c, IntegerInput a, IntegerInput b, bool transposed = false);
// A convolution of (x - x's zero point) and (weight - weight's zero point), i32; weight's zero point may be one number or
// one for each output channel.
Tensor integer_convolution(const Call& c, IntegerInput x, IntegerInput weight);

// What DynamicQuantizeLinear computes of f32: uint8, and scale and zero point.
struct DynamicallyQuantized {
  Tensor codes, scale, zero;  // u8, f32, f32
};
DynamicallyQuantized quantized_dynamically(const Tensor& x);
// The sum over k of (codes - zero)(b - zero of b), i32, of dynamically quantised codes.
Tensor dynamic_product(const Call& c, const DynamicallyQuantized& a, IntegerInput b);

// Reshapes a scale or a zero point of one axis so that it broadcasts to x of this rank; numbers become rank 0.
Tensor along_axis(const Tensor& x, int axis, int rank);

}  // namespace plugrad::io::onnx
