// The gradients of functions as functions, unrecorded: for libraries with an autograd of their own. They run as the op of
// the gradient where the device has it, else composed of other ops, also under Autocast. grad: the gradient of the
// function's result. Floating dtypes; the operands share a device, a dtype and, unless stated otherwise, a shape. Throws
// Error (invalid) otherwise.
#pragma once
#include <plugrad/ops/activations.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/tensor/tensor.hpp>

#include <optional>

namespace plugrad {

// Returns 0 where x <= 0, else grad: the gradient of relu(x).
PLUGRAD_API Tensor relu_backward(const Tensor& grad, const Tensor& x);
// Returns grad y (1 - y): the gradient of y = sigmoid(x).
PLUGRAD_API Tensor sigmoid_backward(const Tensor& grad, const Tensor& y);
// Returns grad (1 - y^2): the gradient of y = tanh(x).
PLUGRAD_API Tensor tanh_backward(const Tensor& grad, const Tensor& y);
// Returns grad (P(x) + x P'(x)), P the function that gelu(x, approximate) multiplies x by.
PLUGRAD_API Tensor gelu_backward(const Tensor& grad, const Tensor& x, Approximation approximate = Approximation::none);
// Returns grad (s + x s (1 - s)), s = sigmoid(x): the gradient of silu(x).
PLUGRAD_API Tensor silu_backward(const Tensor& grad, const Tensor& x);
// Returns y (grad - sum(grad y)) along an axis: the gradient of y = softmax(x, axis).
PLUGRAD_API Tensor softmax_backward(const Tensor& grad, const Tensor& y, int axis);
// Returns grad - e^y sum(grad) along an axis: the gradient of y = log_softmax(x, axis).
PLUGRAD_API Tensor log_softmax_backward(const Tensor& grad, const Tensor& y, int axis);

// Returns the gradient of a convolution's x, in the shape x_shape (n, c, ..), from grad (n, o, ..) and weight (o, c /
// groups, ..), with 1 to 3 spatial axes. stride, padding and dilation are as for conv1d to conv3d.
PLUGRAD_API Tensor convolution_input_backward(const Tensor& grad, const Tensor& weight, const Shape& x_shape,
                                              const Shape& stride = {1}, const Shape& padding = {0},
                                              const Shape& dilation = {1}, int64_t groups = 1);
// Returns the gradient of a convolution's weight, in the shape weight_shape (o, c / groups, ..), from grad (n, o, ..) and x
// (n, c, ..).
PLUGRAD_API Tensor convolution_weight_backward(const Tensor& grad, const Tensor& x, const Shape& weight_shape,
                                               const Shape& stride = {1}, const Shape& padding = {0},
                                               const Shape& dilation = {1}, int64_t groups = 1);
// Returns zeros in the shape x_shape (n, c, ..), with grad added at indices: the gradient of the values of
// max_pool1d_with_indices to max_pool3d_with_indices. indices (i64) has grad's shape.
PLUGRAD_API Tensor max_pool_backward(const Tensor& grad, const Tensor& indices, const Shape& x_shape);

// --- Normalisations. The statistics are in f32, or in f64 for x of f64.

struct RowNorm {
  Tensor y;
  Tensor mean;  // of each row, in the shape of x without the axes of normalized_shape; undefined for rms_norm
  Tensor rstd;  // 1 / sqrt(variance + eps) of each row, or 1 / sqrt(mean of x^2 + eps) for rms_norm
};
// Returns layer_norm(x, normalized_shape, weight, bias, eps) and the statistics for its gradients, unrecorded.
PLUGRAD_API RowNorm layer_norm_with_statistics(const Tensor& x, const Shape& normalized_shape, const Tensor& weight = {},
                                               const Tensor& bias = {}, double eps = 1e-5);
// Returns rms_norm(x, normalized_shape, weight, eps) and the statistics for its gradients, unrecorded.
PLUGRAD_API RowNorm rms_norm_with_statistics(const Tensor& x, const Shape& normalized_shape, const Tensor& weight,
                                             double eps);
struct ChannelNorm {
  Tensor y;
  Tensor mean, variance;  // (c): variance = sum((x - mean)^2) / count
};
// Returns batch_norm(x, .., weight, bias, training = true, .., eps) for x (n, c, ..) and the statistics of x, unrecorded.
PLUGRAD_API ChannelNorm batch_norm_with_statistics(const Tensor& x, const Tensor& weight = {}, const Tensor& bias = {},
                                                   double eps = 1e-5);

// The gradients of x and of the parameters, in the dtypes of x and of weight. weight may have another dtype than x; if it is
// undefined, its gradient has the dtype of x.
struct NormGradients {
  Tensor x, weight, bias;  // bias is undefined for a function without a bias
};
// Returns the gradients of layer_norm(x, normalized_shape, weight, bias, eps). weight has the shape normalized_shape;
// undefined: ones. mean and rstd: see layer_norm_with_statistics.
PLUGRAD_API NormGradients layer_norm_backward(const Tensor& grad, const Tensor& x, const Shape& normalized_shape,
                                              const Tensor& weight, const Tensor& mean, const Tensor& rstd);
// Returns the gradients of rms_norm(x, normalized_shape, weight, eps), as layer_norm_backward does.
PLUGRAD_API NormGradients rms_norm_backward(const Tensor& grad, const Tensor& x, const Shape& normalized_shape,
                                            const Tensor& weight, const Tensor& rstd);
// Returns the gradients of batch_norm(x, .., weight, bias, training = true, .., eps) for x (n, c, ..). mean and variance
// (c): see batch_norm_with_statistics; weight (c); undefined: ones.
PLUGRAD_API NormGradients batch_norm_backward(const Tensor& grad, const Tensor& x, const Tensor& weight, const Tensor& mean,
                                              const Tensor& variance, double eps = 1e-5);

// --- The negative log likelihood.

struct NllLoss {
  Tensor loss;          // one element, or (n) without a reduction
  Tensor total_weight;  // one element: the sum of the weights of the rows
};
// Returns the loss -weight[target] x[target] of each row of log-probabilities x (n, c) for classes target (n, i64): their
// sum, or their sum by the total weight, unrecorded. weight (c); undefined: ones. A row whose target is ignore_index counts
// for nothing. Throws Error (index_error) for other targets outside 0..c - 1.
PLUGRAD_API NllLoss nll_loss_with_total(const Tensor& x, const Tensor& target, const Tensor& weight = {},
                                        int64_t ignore_index = -100, Reduction reduction = Reduction::mean);
// Returns the gradient of nll_loss_with_total's x (n, c). grad has loss's shape; total_weight is its result.
PLUGRAD_API Tensor nll_loss_backward(const Tensor& grad, const Tensor& x, const Tensor& target, const Tensor& weight,
                                     int64_t ignore_index, Reduction reduction, const Tensor& total_weight);

// --- Attention.

struct Attention {
  Tensor out;  // (.., l, v)
  Tensor lse;  // (.., l), f32, or f64 for f64: the logarithm of the sum of e^score over the keys of each query
};
// Returns softmax(query key^T scale + mask) value and the statistic for its gradients, unrecorded: query (.., l, e), key
// (.., s, e) and value (.., s, v) with equal leading axes. mask broadcasts to (.., l, s); -inf hides a key. is_causal lets
// query i see the keys 0..i, and excludes mask. scale is 1 / sqrt(e) by default. A query without any key gives 0, and lse
// is -inf.
PLUGRAD_API Attention attention_with_lse(const Tensor& query, const Tensor& key, const Tensor& value,
                                         const Tensor& mask = {}, bool is_causal = false,
                                         std::optional<double> scale = std::nullopt);
struct AttentionGradients {
  Tensor query, key, value;
};
// Returns the gradients of attention_with_lse(query, key, value, mask, is_causal, scale).out. out and lse: its results.
PLUGRAD_API AttentionGradients attention_backward(const Tensor& grad, const Tensor& query, const Tensor& key,
                                                  const Tensor& value, const Tensor& mask, const Tensor& out,
                                                  const Tensor& lse, bool is_causal = false,
                                                  std::optional<double> scale = std::nullopt);

}  // namespace plugrad
