// Activation functions. Unless stated otherwise they work element by element, take floating dtypes, keep shape and dtype,
// and throw Error (invalid) for other dtypes. Comments state the gradients at kinks.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <optional>

namespace plugrad {

// Returns e^x divided by its sum along an axis. bf16 is computed in f32. A line that holds only -inf gives NaN.
PLUGRAD_API Tensor softmax(const Tensor& x, int axis);
// Returns x sigmoid(x).
PLUGRAD_API Tensor silu(const Tensor& x);

enum class Approximation { none, tanh };
// Returns x times the standard normal distribution function of x: x (1 + erf(x / sqrt(2))) / 2. Approximation::tanh computes
// x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2 instead.
PLUGRAD_API Tensor gelu(const Tensor& x, Approximation approximate = Approximation::none);
// Returns ln(1 + e^(beta x)) / beta, accurate where the exponential is small; x itself where beta x is above threshold.
PLUGRAD_API Tensor softplus(const Tensor& x, double beta = 1, double threshold = 20);
// Returns x where x is positive, else negative_slope x. The gradient at 0 is negative_slope.
PLUGRAD_API Tensor leaky_relu(const Tensor& x, double negative_slope = 0.01);
// Returns x where x is positive, else alpha (e^x - 1), accurate near 0. The gradient at 0 is alpha.
PLUGRAD_API Tensor elu(const Tensor& x, double alpha = 1);
// Returns x limited to [min_val, max_val]. The gradient is 0 at the bounds and beyond them.
PLUGRAD_API Tensor hardtanh(const Tensor& x, double min_val = -1, double max_val = 1);
// Returns x limited to [min, max]; an omitted bound does not limit. If min is above max, every element is max. Any dtype but
// bool. The gradient is 0 beyond the bounds and, as in PyTorch since 2.15, at the bounds. Throws Error (invalid) without any
// bound.
PLUGRAD_API Tensor clamp(const Tensor& x, std::optional<Number> min = std::nullopt,
                         std::optional<Number> max = std::nullopt);
// Returns x limited by bounds that broadcast with x; a single bound may be undefined. The result is NaN where a bound is
// NaN. A bound that replaces x gets the gradient; a single bound that equals x gets half of the gradient.
PLUGRAD_API Tensor clamp(const Tensor& x, const Tensor& min, const Tensor& max = {});
// Returns x limited by a lower bound alone: see clamp. The dtype of a tensor min is promoted with x's dtype.
PLUGRAD_API Tensor clamp_min(const Tensor& x, Number min);
PLUGRAD_API Tensor clamp_min(const Tensor& x, const Tensor& min);
// Returns x limited by an upper bound alone: see clamp. The dtype of a tensor max is promoted with x's dtype.
PLUGRAD_API Tensor clamp_max(const Tensor& x, Number max);
PLUGRAD_API Tensor clamp_max(const Tensor& x, const Tensor& max);

}  // namespace plugrad
