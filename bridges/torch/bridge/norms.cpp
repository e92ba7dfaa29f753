// Normalisations and softmax.
#include <ATen/Operators.h>
#include <bridge/adapt.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/gradients.hpp>
#include <plugrad/ops/normalization.hpp>
#include <plugrad/ops/powers.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/views.hpp>

namespace plugrad_torch {
namespace o = at::_ops;
namespace {
P in_dtype_of(const OptT& x, const P& like) {
  const P y = over(x);
  return y.defined() ? plugrad::cast(y, like.dtype()) : y;
}

// --- Batch norm.

// Running statistics move towards those of the batch. The variance of the batch is unbiased here.
void update_statistics(const OptT& running_mean, const OptT& running_var, const plugrad::ChannelNorm& made, double count,
                       double momentum) {
  const auto move = [&](const OptT& running, const P& value, double scale) {
    if (!running || !running->defined()) return;
    P statistic = over(*running);
    statistic.mul_(1 - momentum);
    statistic.add_(plugrad::cast(value, statistic.dtype()), momentum * scale);
  };
  move(running_mean, made.mean, 1);
  move(running_var, made.variance, count / (count - 1));
}
P inverse_deviation(const P& variance, double eps) { return plugrad::rsqrt(plugrad::add(variance, eps)); }

std::tuple<T, T, T> batch_norm(const T& x, const OptT& weight, const OptT& bias, const OptT& running_mean,
                               const OptT& running_var, bool training, double momentum, double eps) {
  const P input = over(x);
  if (!training) {
    const P y = plugrad::batch_norm(input, in_dtype_of(running_mean, input), in_dtype_of(running_var, input),
                                    in_dtype_of(weight, input), in_dtype_of(bias, input), false, momentum, eps);
    const T none = unused({0}, x.scalar_type(), x.device().index());
    return {result(y), none, none.clone()};
  }
  if (!x.numel()) throw Unsupported{"an empty batch"};
  const plugrad::ChannelNorm made =
      plugrad::batch_norm_with_statistics(input, in_dtype_of(weight, input), in_dtype_of(bias, input), eps);
  update_statistics(running_mean, running_var, made, static_cast<double>(x.numel()) / static_cast<double>(x.size(1)),
                    momentum);
  return {result(made.y), result(made.mean), result(inverse_deviation(made.variance, eps))};
}
std::tuple<T, T, T> batch_norm_legit(const T& x, const OptT& weight, const OptT& bias, T& running_mean, T& running_var,
                                     bool training, double momentum, double eps) {
  return batch_norm(x, weight, bias, running_mean, running_var, training, momentum, eps);
}
std::tuple<T, T, T> batch_norm_stateless(const T& x, const OptT& weight, const OptT& bias, bool training, double momentum,
                                         double eps) {
  return batch_norm(x, weight, bias, std::nullopt, std::nullopt, training, momentum, eps);
}

// The gradients where the statistics are constants.
plugrad::NormGradients constant_statistics(const P& grad, const P& x, const P& weight, const P& mean, const P& inverse) {
  Shape per_channel(std::vector<int64_t>(static_cast<size_t>(x.rank()), 1)), others{0};
  per_channel[1] = x.size(1);
  for (int i = 2; i < x.rank(); ++i) others.push_back(i);
  const auto channels = [&](const P& y) { return plugrad::reshape(plugrad::cast(y, x.dtype()), per_channel); };
  const P scale = channels(inverse), normal = plugrad::mul(plugrad::sub(x, channels(mean)), scale);
  const P scaled = plugrad::mul(grad, scale);
  return {weight.defined() ? plugrad::mul(scaled, channels(weight)) : scaled,
          plugrad::sum(plugrad::mul(grad, normal), others), plugrad::sum(grad, others)};
}
std::tuple<T, T, T> batch_norm_backward(const T& grad, const T& x, const OptT& weight, const OptT& running_mean,
                                        const OptT& running_var, const OptT& mean, const OptT& inverse, bool training,
                                        double eps, std::array<bool, 3> wanted) {
  const P g = over(grad), input = over(x), w = over(weight);
  plugrad::NormGradients made;
  if (training) {
    const P inverse_ = over(*inverse);
    const P variance = plugrad::sub(plugrad::div(1, plugrad::mul(inverse_, inverse_)), eps);
    made = plugrad::batch_norm_backward(g, input, w, over(*mean), variance, eps);
  } else {
    made = constant_statistics(g, input, w, over(*running_mean), inverse_deviation(over(*running_var), eps));
  }
  const auto given = [&](bool is_wanted, const P& y) { return is_wanted ? result(y) : T(); };
  return {given(wanted[0], made.x), given(wanted[1], made.weight), given(wanted[2], made.bias)};
}

// --- Layer norm.

// PyTorch's statistics keep the normalised axes with extent 1.
std::vector<int64_t> statistic_sizes(const T& x, size_t normalized) {
  std::vector<int64_t> sizes = x.sizes().vec();
  for (size_t i = sizes.size() - normalized; i < sizes.size(); ++i) sizes[i] = 1;
  return sizes;
}
std::tuple<T, T, T> layer_norm(const T& x, IntArrayRef normalized, const OptT& weight, const OptT& bias, double eps) {
  const P input = over(x);
  const plugrad::RowNorm made = plugrad::layer_norm_with_statistics(input, shape_of(normalized), in_dtype_of(weight, input),
                                                                    in_dtype_of(bias, input), eps);
  const Shape kept(statistic_sizes(x, normalized.size()));
  return {result(made.y), result(plugrad::reshape(made.mean, kept)), result(plugrad::reshape(made.rstd, kept))};
}
std::tuple<T, T, T> layer_norm_backward(const T& grad, const T& x, IntArrayRef normalized, const T& mean, const T& rstd,
                                        const OptT& weight, const OptT&, std::array<bool, 3> wanted) {
  const Shape rows = shape_of(x.sizes().slice(0, static_cast<size_t>(x.dim()) - normalized.size()));
  const plugrad::NormGradients made =
      plugrad::layer_norm_backward(over(grad), over(x), shape_of(normalized), over(weight),
                                   plugrad::reshape(over(mean), rows), plugrad::reshape(over(rstd), rows));
  const auto given = [&](bool is_wanted, const P& y) { return is_wanted ? result(y) : T(); };
  return {given(wanted[0], made.x), given(wanted[1], made.weight), given(wanted[2], made.bias)};
}

std::tuple<T, T> rms_norm(const T& x, IntArrayRef normalized, const OptT& weight, std::optional<double> eps) {
  const P input = over(x);
  const double least =
      x.scalar_type() == at::kDouble ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  const plugrad::RowNorm made =
      plugrad::rms_norm_with_statistics(input, shape_of(normalized), in_dtype_of(weight, input), eps.value_or(least));
  return {result(made.y), result(plugrad::reshape(made.rstd, Shape(statistic_sizes(x, normalized.size()))))};
}
std::tuple<T, T> rms_norm_backward(const T& grad, const T& x, IntArrayRef normalized, const T& rstd, const OptT& weight,
                                   std::array<bool, 2> wanted) {
  const Shape rows = shape_of(x.sizes().slice(0, static_cast<size_t>(x.dim()) - normalized.size()));
  const plugrad::NormGradients made = plugrad::rms_norm_backward(over(grad), over(x), shape_of(normalized), over(weight),
                                                                 plugrad::reshape(over(rstd), rows));
  return {wanted[0] ? result(made.x) : T(), wanted[1] ? result(made.weight) : T()};
}

// --- Group norm: layer norm of the groups, with a weight for each channel.

struct Groups {
  Shape rows, channels;  // (n groups, elements of a group), and (n, c, elements of a channel)
};
Groups groups_of(int64_t n, int64_t c, int64_t size, int64_t groups) {
  return {{n * groups, c / groups * size}, {n, c, size}};
}
P per_channel(const OptT& x, DType dtype) { return plugrad::reshape(plugrad::cast(over(x), dtype), {1, -1, 1}); }

std::tuple<T, T, T> group_norm(const T& x, const OptT& weight, const OptT& bias, int64_t n, int64_t c, int64_t size,
                               int64_t groups, double eps) {
  if (!x.numel()) throw Unsupported{"an empty batch"};
  const P input = over(x);
  const DType wide = plugrad::accumulator_of(input.dtype());
  const Groups how = groups_of(n, c, size, groups);
  const plugrad::RowNorm made = plugrad::layer_norm_with_statistics(plugrad::reshape(plugrad::cast(input, wide), how.rows),
                                                                    {how.rows[1]}, {}, {}, eps);
  P y = plugrad::reshape(made.y, how.channels);
  if (weight && weight->defined()) y = plugrad::mul(y, per_channel(weight, wide));
  if (bias && bias->defined()) y = plugrad::add(y, per_channel(bias, wide));
  const auto statistic = [&](const P& value) { return result(plugrad::reshape(value, {n, groups})); };
  return {result(plugrad::cast(plugrad::reshape(y, input.shape()), input.dtype())), statistic(made.mean),
          statistic(made.rstd)};
}
std::tuple<T, T, T> group_norm_backward(const T& grad, const T& x, const T& mean, const T& rstd, const OptT& weight,
                                        int64_t n, int64_t c, int64_t size, int64_t groups, std::array<bool, 3> wanted) {
  if (!x.numel()) throw Unsupported{"an empty batch"};
  const P input = over(x);
  const DType wide = plugrad::accumulator_of(input.dtype());
  const Groups how = groups_of(n, c, size, groups);
  const auto rows = [&](const P& y) { return plugrad::reshape(y, how.rows); };
  const auto statistic = [&](const T& y) { return plugrad::reshape(plugrad::cast(over(y), wide), {n * groups, 1}); };
  const P g = plugrad::reshape(plugrad::cast(over(grad), wide), how.channels), values = rows(plugrad::cast(input, wide));
  const P inner = weight && weight->defined() ? plugrad::mul(g, per_channel(weight, wide)) : g;
  T of_x, of_weight, of_bias;
  if (wanted[0]) {
    const plugrad::NormGradients made =
        plugrad::layer_norm_backward(rows(inner), values, {how.rows[1]}, {}, plugrad::reshape(statistic(mean), {-1}),
                                     plugrad::reshape(statistic(rstd), {-1}));
    of_x = result(plugrad::cast(plugrad::reshape(made.x, input.shape()), input.dtype()));
  }
  if (wanted[1]) {
    const P normal = plugrad::mul(plugrad::sub(values, statistic(mean)), statistic(rstd));
    of_weight =
        result(plugrad::cast(plugrad::sum(plugrad::mul(g, plugrad::reshape(normal, how.channels)), {0, 2}), input.dtype()));
  }
  if (wanted[2]) of_bias = result(plugrad::cast(plugrad::sum(g, {0, 2}), input.dtype()));
  return {of_x, of_weight, of_bias};
}

// --- Softmax.

template <auto kFunction> T& softmax_out(const T& x, int64_t axis, bool half_to_float, T& out) {
  const P y = over(x, half_to_float ? at::kFloat : x.scalar_type());
  if (!x.dim()) return write(out, plugrad::reshape(kFunction(plugrad::reshape(y, {1}), 0), {}));
  return write(out, kFunction(y, static_cast<int>(axis)));
}
template <auto kFunction> T& softmax_backward_out(const T& grad, const T& y, int64_t axis, ScalarType dtype, T& out) {
  P g = over(grad), value = over(y);
  if (!y.dim()) g = plugrad::reshape(g, {1}), value = plugrad::reshape(value, {1});
  const P made = kFunction(g, value, static_cast<int>(axis));
  return write(out, plugrad::cast(y.dim() ? made : plugrad::reshape(made, {}), dtype_of(dtype)));
}
}  // namespace
}  // namespace plugrad_torch

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  using namespace plugrad_torch;
  kernel<o::native_batch_norm, batch_norm>(library);
  kernel<o::_native_batch_norm_legit, batch_norm_legit>(library);
  kernel<o::_native_batch_norm_legit_no_stats, batch_norm_stateless>(library);
  kernel<o::native_batch_norm_backward, batch_norm_backward>(library);
  kernel<o::native_layer_norm, layer_norm>(library);
  kernel<o::native_layer_norm_backward, layer_norm_backward>(library);
  kernel<o::native_group_norm, group_norm>(library);
  kernel<o::native_group_norm_backward, group_norm_backward>(library);
  kernel<o::_fused_rms_norm, rms_norm>(library);
  kernel<o::_fused_rms_norm_backward, rms_norm_backward>(library);
  kernel<o::_softmax_out, softmax_out<plugrad::softmax>>(library);
  kernel<o::_log_softmax_out, softmax_out<plugrad::log_softmax>>(library);
  kernel<o::_softmax_backward_data_out, softmax_backward_out<plugrad::softmax_backward>>(library);
  kernel<o::_log_softmax_backward_data_out, softmax_backward_out<plugrad::log_softmax_backward>>(library);
}
