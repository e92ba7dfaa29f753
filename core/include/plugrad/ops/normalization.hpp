// Normalisation. Floating dtypes; bf16 is computed in f32. An undefined weight or bias is left out; a defined weight or bias
// has the dtype of x.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <optional>

namespace plugrad {

// Subtracts the mean over the last axes, whose extents are normalized_shape, and divides by the square root of their
// variance (correction 0) plus eps. Then multiplies by weight and adds bias, both of shape normalized_shape. Throws Error
// (invalid) if the shapes do not fit.
PLUGRAD_API Tensor layer_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight = {},
                              const Tensor& bias = {}, double eps = 1e-5);
// Divides by the square root of the mean of squares over the last axes, whose extents are normalized_shape, plus eps. Then
// multiplies by weight. By default eps is the distance from 1 to the next number of x's dtype.
PLUGRAD_API Tensor rms_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight = {},
                            std::optional<double> eps = std::nullopt);
// Normalises each channel of x (n, c, ..) over all remaining axes, then multiplies by weight (c) and adds bias (c). With
// training it uses the batch's mean and variance (correction 0), and moves running_mean and running_var (c), unless
// undefined, in place towards the batch's mean and its variance of correction 1, by the fraction momentum. Without training
// it uses running_mean and running_var. Throws Error (invalid) if shapes do not fit, for undefined running_mean or
// running_var without training, and for training on 1 element per channel.
PLUGRAD_API Tensor batch_norm(const Tensor& x, const Tensor& running_mean = {}, const Tensor& running_var = {},
                              const Tensor& weight = {}, const Tensor& bias = {}, bool training = false,
                              double momentum = 0.1, double eps = 1e-5);
// Normalises groups of c / num_groups channels of x (n, c, ..) as layer_norm does, then multiplies by weight (c) and adds
// bias (c). Throws Error (invalid) if num_groups does not divide c.
PLUGRAD_API Tensor group_norm(const Tensor& x, int64_t num_groups, const Tensor& weight = {}, const Tensor& bias = {},
                              double eps = 1e-5);
// Normalises each channel x[n, c] over all remaining axes, then multiplies by weight (c) and adds bias (c). With
// use_input_stats it uses the channel's own mean and variance (correction 0), and moves running_mean and running_var (c),
// unless undefined, by the fraction momentum towards the averages over n of the means and of the variances of correction 1.
// Without use_input_stats it uses running_mean and running_var. Throws Error (invalid) as batch_norm does.
PLUGRAD_API Tensor instance_norm(const Tensor& x, const Tensor& running_mean = {}, const Tensor& running_var = {},
                                 const Tensor& weight = {}, const Tensor& bias = {}, bool use_input_stats = true,
                                 double momentum = 0.1, double eps = 1e-5);
// Divides by (k + alpha m)^beta, where m is the sum of squares of the `size` channels around each channel, divided by size;
// x is (n, c, ..). Throws Error (invalid) for rank 2 or less.
PLUGRAD_API Tensor local_response_norm(const Tensor& x, int64_t size, double alpha = 1e-4, double beta = 0.75, double k = 1);

}  // namespace plugrad
