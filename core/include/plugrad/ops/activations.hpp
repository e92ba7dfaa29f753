// Activation functions, element by element unless they say otherwise. They take floating dtypes, keep shape and dtype, and
// throw Error (invalid) for other dtypes. Comments state the gradients at kinks.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <optional>

namespace plugrad {

// e^x divided by its sum along an axis. bf16 is computed in f32. A line of -inf alone gives NaN.
PLUGRAD_API Tensor softmax(const Tensor& x, int axis);
// x sigmoid(x).
PLUGRAD_API Tensor silu(const Tensor& x);

enum class Approximation { none, tanh };
// x times the standard normal distribution function of x: x (1 + erf(x / sqrt(2))) / 2. Approximation::tanh computes
// x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2 instead.
PLUGRAD_API Tensor gelu(const Tensor& x, Approximation approximate = Approximation::none);
// ln(1 + e^(beta x)) / beta, accurate where the exponential is small; x itself where beta x is above threshold.
PLUGRAD_API Tensor softplus(const Tensor& x, double beta = 1, double threshold = 20);
// x where it is positive, else negative_slope x. The gradient at 0 is negative_slope.
PLUGRAD_API Tensor leaky_relu(const Tensor& x, double negative_slope = 0.01);
// x where it is positive, else alpha (e^x - 1), accurate near 0. The gradient at 0 is alpha.
PLUGRAD_API Tensor elu(const Tensor& x, double alpha = 1);
// x limited to [min_val, max_val]. The gradient is 0 at the bounds and beyond them.
PLUGRAD_API Tensor hardtanh(const Tensor& x, double min_val = -1, double max_val = 1);
// x limited to [min, max]; an omitted bound does not limit. If min is above max, every element is max. Any dtype but bool.
// The gradient is 0 at the bounds, as PyTorch's is since 2.15, and beyond them. Throws Error (invalid) without any bound.
PLUGRAD_API Tensor clamp(const Tensor& x, std::optional<Number> min = std::nullopt,
                         std::optional<Number> max = std::nullopt);
// The same with bounds that broadcast with x; a single bound may be undefined. Where a bound is NaN, so is the result. A
// bound that replaces x gets the gradient; a single bound that equals x gets half of it.
PLUGRAD_API Tensor clamp(const Tensor& x, const Tensor& min, const Tensor& max = {});
// clamp with a lower bound alone. A tensor's dtype is promoted with x's.
PLUGRAD_API Tensor clamp_min(const Tensor& x, Number min);
PLUGRAD_API Tensor clamp_min(const Tensor& x, const Tensor& min);
// clamp with an upper bound alone. A tensor's dtype is promoted with x's.
PLUGRAD_API Tensor clamp_max(const Tensor& x, Number max);
PLUGRAD_API Tensor clamp_max(const Tensor& x, const Tensor& max);

}  // namespace plugrad
