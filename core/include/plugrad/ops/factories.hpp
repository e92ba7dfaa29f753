// Functions that create tensors.
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad {

// Returns a tensor of this shape with all elements equal to `value`.
PLUGRAD_API Tensor full(const Shape& shape, Number value, DType dtype = DType::f32, Device device = default_device());
// Returns a tensor of zeros of this shape.
PLUGRAD_API Tensor zeros(const Shape& shape, DType dtype = DType::f32, Device device = default_device());
// Returns a tensor of ones of this shape.
PLUGRAD_API Tensor ones(const Shape& shape, DType dtype = DType::f32, Device device = default_device());
// Returns a tensor with the shape, dtype and device of `like` and all elements equal to `value`.
PLUGRAD_API Tensor full_like(const Tensor& like, Number value);
// Returns zeros with the shape, dtype and device of `like`.
PLUGRAD_API Tensor zeros_like(const Tensor& like);
// Returns ones with the shape, dtype and device of `like`.
PLUGRAD_API Tensor ones_like(const Tensor& like);
// Returns start, start + step, ... up to end, without end: ceil((end - start) / step) elements. Throws Error (invalid) for
// step 0, for a fraction with an integer dtype, and for dtype bool.
PLUGRAD_API Tensor arange(Number start, Number end, Number step = 1, DType dtype = DType::f32,
                          Device device = default_device());
// Returns `steps` numbers from start to end, both included, at equal distances; returns start alone if steps is 1. Integers
// are rounded towards zero. Throws Error (invalid) for a negative steps, for a fraction with an integer dtype, and for dtype
// bool.
PLUGRAD_API Tensor linspace(double start, double end, int64_t steps, DType dtype = DType::f32,
                            Device device = default_device());
// Returns base to the power of each of linspace's numbers. Floating dtypes.
PLUGRAD_API Tensor logspace(double start, double end, int64_t steps, double base = 10, DType dtype = DType::f32,
                            Device device = default_device());
// Returns a tensor with unspecified elements.
PLUGRAD_API Tensor empty(const Shape& shape, DType dtype = DType::f32, Device device = default_device());
// Returns a tensor with the shape, dtype and device of `like` and unspecified elements.
PLUGRAD_API Tensor empty_like(const Tensor& like);
// Returns a tensor of rank 0.
PLUGRAD_API Tensor scalar(Number value, DType dtype = DType::f32, Device device = default_device());
// Returns uniform random numbers in [low, high), drawn from the device's generator. Floating dtypes.
PLUGRAD_API Tensor rand(const Shape& shape, DType dtype = DType::f32, Device device = default_device(), double low = 0,
                        double high = 1);
// Returns normal random numbers with this mean and standard deviation, drawn from the device's generator. Floating dtypes.
PLUGRAD_API Tensor randn(const Shape& shape, DType dtype = DType::f32, Device device = default_device(), double mean = 0,
                         double deviation = 1);

}  // namespace plugrad
