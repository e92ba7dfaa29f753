// Initial values of parameters, written in place and unrecorded, from the generator of the tensor's device. Each returns its
// tensor. fan_in and fan_out of a tensor (out, in, ..) are `in` and `out` times the extents behind them. Throws Error
// (invalid) for integers, for bounds in the wrong order, and, where fans are needed, for rank 0 and 1.
#pragma once
#include <plugrad/tensor/tensor.hpp>

namespace plugrad::nn::init {

PLUGRAD_API Tensor uniform_(Tensor tensor, double a = 0, double b = 1);
PLUGRAD_API Tensor normal_(Tensor tensor, double mean = 0, double std = 1);
// Normal numbers within [a, b], distributed as if numbers outside were drawn again.
PLUGRAD_API Tensor trunc_normal_(Tensor tensor, double mean = 0, double std = 1, double a = -2, double b = 2);
PLUGRAD_API Tensor constant_(Tensor tensor, double value);
PLUGRAD_API Tensor ones_(Tensor tensor);
PLUGRAD_API Tensor zeros_(Tensor tensor);
// The identity; a tensor of rank 2.
PLUGRAD_API Tensor eye_(Tensor tensor);

// The activation of a layer, for the gain that keeps the variance of the layer's results.
enum class Nonlinearity { linear, sigmoid, tanh, relu, leaky_relu, selu };
// slope: of leaky_relu.
PLUGRAD_API double calculate_gain(Nonlinearity nonlinearity, double slope = 0.01);
// Uniform or normal with variance gain^2 2 / (fan_in + fan_out): Glorot and Bengio, 2010.
PLUGRAD_API Tensor xavier_uniform_(Tensor tensor, double gain = 1);
PLUGRAD_API Tensor xavier_normal_(Tensor tensor, double gain = 1);
enum class Fan { in, out };
// Uniform or normal with variance gain^2 / fan for the gain of the nonlinearity, with slope a: He et al., 2015.
PLUGRAD_API Tensor kaiming_uniform_(Tensor tensor, double a = 0, Fan mode = Fan::in,
                                    Nonlinearity nonlinearity = Nonlinearity::leaky_relu);
PLUGRAD_API Tensor kaiming_normal_(Tensor tensor, double a = 0, Fan mode = Fan::in,
                                   Nonlinearity nonlinearity = Nonlinearity::leaky_relu);
// A matrix (rows, the rest) with orthonormal rows or columns (the fewer of the two), times gain: Saxe et al., 2014.
PLUGRAD_API Tensor orthogonal_(Tensor tensor, double gain = 1);

}  // namespace plugrad::nn::init
