// New tensors.
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

PLUGRAD_API Tensor full(const Shape& shape, Number value, DType dtype = DType::f32, Device device = default_device());
PLUGRAD_API Tensor zeros(const Shape& shape, DType dtype = DType::f32, Device device = default_device());
PLUGRAD_API Tensor ones(const Shape& shape, DType dtype = DType::f32, Device device = default_device());
PLUGRAD_API Tensor full_like(const Tensor& like, Number value);
PLUGRAD_API Tensor zeros_like(const Tensor& like);
PLUGRAD_API Tensor ones_like(const Tensor& like);
// start, start + step, ... below (above, for a negative step) end: ceil((end - start) / step) elements, rank 1. Throws
// Error (invalid) for step 0, for a fraction with an integer dtype, and for dtype bool.
PLUGRAD_API Tensor arange(Number start, Number end, Number step = 1, DType dtype = DType::f32,
                          Device device = default_device());
// A tensor of one element, rank 0.
PLUGRAD_API Tensor scalar(Number value, DType dtype = DType::f32, Device device = default_device());
// Uniform in [low, high), by the device's generator. Floating dtypes.
PLUGRAD_API Tensor rand(const Shape& shape, DType dtype = DType::f32, Device device = default_device(), double low = 0,
                        double high = 1);
// Normal with that mean and standard deviation, by the device's generator. Floating dtypes.
PLUGRAD_API Tensor randn(const Shape& shape, DType dtype = DType::f32, Device device = default_device(), double mean = 0,
                         double deviation = 1);

}  // namespace plugrad
