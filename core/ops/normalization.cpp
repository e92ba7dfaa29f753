#include <plugrad/ops/normalization.hpp>

#include <core/ops/argument.hpp>
#include <core/ops/autocast_rules.hpp>
#include <core/ops/backward.hpp>
#include <core/ops/channels.hpp>
#include <core/ops/fused_norms.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/arrangement.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/gradients.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/views.hpp>

#include <cmath>

namespace plugrad {
namespace {
// Checks that x's last extents are these. Returns their axes.
Shape axes_of_extents(const char* name, const Tensor& x, const Shape& extents) {
  Shape axes;
  bool fits = !extents.empty() && extents.rank() <= x.rank();
  for (int i = 0; fits && i < extents.rank(); ++i) {
    axes.push_back(i - extents.rank());
    fits = extents[static_cast<size_t>(i)] == x.size(i - extents.rank());
  }
  if (!fits) refuse(name, "x has shape " + x.shape().text() + ": expected its last extents to be " + extents.text());
  return axes;
}

Tensor over_root(const Tensor& centred, const Tensor& variance, double eps) {
  return div(centred, sqrt(add(variance, eps)));
}

Tensor normalised(const Tensor& x, const Shape& axes, double eps) {
  const Tensor centred = sub(x, mean(x, axes, true));
  return over_root(centred, mean(mul(centred, centred), axes, true), eps);
}

}  // namespace

// --- Rows.

namespace {
// x as a matrix with the normalised elements as rows.
Tensor matrix(const Tensor& x, const Shape& normalized_shape) { return reshape(x, {-1, normalized_shape.count()}); }

// A parameter as a vector of n elements; where it is undefined, all of them are `number`.
Tensor parameter(const Tensor& given, int64_t n, double number, const Tensor& like) {
  return given.defined() ? reshape(given, {n}) : full({n}, number, like.dtype(), like.device());
}

// Whether a single op can take the operands as they are.
bool is_alike(const Tensor& x, const Tensor& parameter) {
  return !parameter.defined() || (parameter.dtype() == x.dtype() && parameter.device() == x.device());
}
}  // namespace

namespace {
// Checks the operands, and returns the axes of a row.
Shape row_axes(const char* name, const Tensor& x, const Shape& normalized_shape, const Tensor& weight, const Tensor& bias) {
  require_floating(name, x);
  require_shape(name, "weight", weight, normalized_shape);
  require_shape(name, "bias", bias, normalized_shape);
  return axes_of_extents(name, x, normalized_shape);
}

// A result for rows (n, d) as the result for x.
RowNorm of_shape(const NormalisedRows& rows, const Tensor& x, const Shape& normalized_shape) {
  Shape outer;
  for (int i = 0; i < x.rank() - normalized_shape.rank(); ++i) outer.push_back(x.size(i));
  return {reshape(rows.y, x.shape()), rows.mean.defined() ? reshape(rows.mean, outer) : Tensor(), reshape(rows.rstd, outer)};
}

// The same, composed of other ops. centred: for layer_norm.
RowNorm composed_rows(const Tensor& x, const Shape& axes, const Shape& normalized_shape, const Tensor& weight,
                      const Tensor& bias, double eps, bool centred) {
  const Tensor wide = at_least_f32(x), average = centred ? mean(wide, axes, true) : Tensor();
  const Tensor from_mean = centred ? sub(wide, average) : wide;
  const Tensor rstd = div(1, sqrt(add(mean(mul(from_mean, from_mean), axes, true), eps)));
  const Tensor y = scaled(mul(from_mean, rstd), weight, bias, normalized_shape, x.dtype());
  return {y, centred ? squeeze(average, axes) : Tensor(), squeeze(rstd, axes)};
}
}  // namespace

RowNorm layer_norm_with_statistics(const Tensor& x, const Shape& normalized_shape, const Tensor& weight, const Tensor& bias,
                                   double eps) {
  const Shape axes = row_axes("layer_norm_with_statistics", x, normalized_shape, weight, bias);
  const WithoutGraph plainly;
  if (x.count() && is_alike(x, weight) && is_alike(x, bias)) {
    const int64_t n = normalized_shape.count();
    const NormalisedRows rows =
        fused_layer_norm(matrix(x, normalized_shape), parameter(weight, n, 1, x), parameter(bias, n, 0, x), eps);
    if (rows.y.defined()) return of_shape(rows, x, normalized_shape);
  }
  return composed_rows(x, axes, normalized_shape, weight, bias, eps, true);
}

RowNorm rms_norm_with_statistics(const Tensor& x, const Shape& normalized_shape, const Tensor& weight, double eps) {
  const Shape axes = row_axes("rms_norm_with_statistics", x, normalized_shape, weight, {});
  const WithoutGraph plainly;
  if (x.count() && is_alike(x, weight)) {
    const Tensor factors = parameter(weight, normalized_shape.count(), 1, x);
    const NormalisedRows rows = fused_rms_norm(matrix(x, normalized_shape), factors, eps);
    if (rows.y.defined()) return of_shape(rows, x, normalized_shape);
  }
  return composed_rows(x, axes, normalized_shape, weight, {}, eps, false);
}

Tensor layer_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight, const Tensor& bias, double eps) {
  if (autocasting()) [[unlikely]]
    return in_f32(layer_norm, x, normalized_shape, weight, bias, eps);
  const Shape axes = row_axes("layer_norm", x, normalized_shape, weight, bias);
  if (x.count() && is_alike(x, weight) && is_alike(x, bias)) {
    const int64_t n = normalized_shape.count();
    const Tensor rows = matrix(x, normalized_shape);
    const Tensor y = fused_layer_norm(rows, parameter(weight, n, 1, x), parameter(bias, n, 0, x), eps).y;
    if (y.defined()) return reshape(y, x.shape());
  }
  return scaled(normalised(at_least_f32(x), axes, eps), weight, bias, normalized_shape, x.dtype());
}

Tensor rms_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight, std::optional<double> eps) {
  if (autocasting()) [[unlikely]]
    return in_f32(rms_norm, x, normalized_shape, weight, eps);
  const Shape axes = row_axes("rms_norm", x, normalized_shape, weight, {});
  const double spacing = std::ldexp(1.0, 1 - dtype_info(static_cast<uint8_t>(x.dtype()))->digits);
  if (x.count() && is_alike(x, weight)) {
    const Tensor factors = parameter(weight, normalized_shape.count(), 1, x);
    const Tensor y = fused_rms_norm(matrix(x, normalized_shape), factors, eps.value_or(spacing)).y;
    if (y.defined()) return reshape(y, x.shape());
  }
  const Tensor wide = at_least_f32(x), squares = mean(mul(wide, wide), axes, true);
  return scaled(over_root(wide, squares, eps.value_or(spacing)), weight, {}, normalized_shape, x.dtype());
}

// --- Channels.

namespace {
// x (n, c, s), in f32 at least, normalised over n and s; times weight plus bias. Both may be undefined.
NormalisedChannels normalised_channels(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  if (x.count() && is_alike(x, weight) && is_alike(x, bias)) {
    const int64_t c = x.size(1);
    NormalisedChannels all = fused_batch_norm(x, parameter(weight, c, 1, x), parameter(bias, c, 0, x), eps);
    if (all.y.defined()) return all;
  }
  const Tensor average = mean(x, {0, 2}, true), centred = sub(x, average);
  const Tensor variance = mean(mul(centred, centred), {0, 2}, true);
  const Tensor y = scaled(over_root(centred, variance, eps), weight, bias, {x.size(1), 1}, x.dtype());
  return {y, reshape(average.detach(), {x.size(1)}), reshape(variance.detach(), {x.size(1)})};
}

Tensor wide_parameter(const Tensor& given) { return given.defined() ? at_least_f32(given) : given; }

}  // namespace

Tensor group_norm(const Tensor& x, int64_t num_groups, const Tensor& weight, const Tensor& bias, double eps) {
  if (autocasting()) [[unlikely]]
    return in_f32(group_norm, x, num_groups, weight, bias, eps);
  require_channels("group_norm", x, weight, bias);
  if (num_groups < 1 || x.size(1) % num_groups)
    refuse("group_norm", std::to_string(num_groups) + " groups do not divide the channels of " + x.shape().text() +
                             ": give a divisor of " + std::to_string(x.size(1)));
  if (!x.count()) return x;
  const Tensor groups = reshape(at_least_f32(x), {1, x.size(0) * num_groups, -1});
  const Tensor y = normalised_channels(groups, {}, {}, eps).y;
  return scaled(reshape(y, x.shape()), weight, bias, channel_shape(x), x.dtype());
}

namespace {
// Of one channel of a batch.
double elements_of_channel(const char* name, const Tensor& x) {
  const double count = static_cast<double>(x.count()) / static_cast<double>(x.size(1));
  if (!(count > 1)) refuse(name, "x has shape " + x.shape().text() + ": training needs more than one element per channel");
  return count;
}
}  // namespace

ChannelNorm batch_norm_with_statistics(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  require_channels("batch_norm_with_statistics", x, weight, bias);
  (void)elements_of_channel("batch_norm_with_statistics", x);
  const WithoutGraph plainly;
  const Tensor channels = reshape(at_least_f32(x), {x.size(0), x.size(1), x.count() / x.size(0) / x.size(1)});
  const NormalisedChannels all = normalised_channels(channels, wide_parameter(weight), wide_parameter(bias), eps);
  return {cast(reshape(all.y, x.shape()), x.dtype()), all.mean, all.variance};
}

Tensor batch_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight,
                  const Tensor& bias, bool training, double momentum, double eps) {
  if (autocasting()) [[unlikely]] {
    // The running values are written, so they must not be copies.
    const auto normalised = [&](const Tensor& wide) {
      return batch_norm(wide, running_mean, running_var, weight, bias, training, momentum, eps);
    };
    return in_f32(normalised, x);
  }
  require_channels("batch_norm", x, weight, bias);
  require_shape("batch_norm", "running_mean", running_mean, {x.size(1)});
  require_shape("batch_norm", "running_var", running_var, {x.size(1)});
  if (!training && !(running_mean.defined() && running_var.defined()))
    refuse("batch_norm", "running_mean and running_var are missing: give both, or train");
  const Tensor wide = at_least_f32(x);
  if (training) {
    const double count = elements_of_channel("batch_norm", x);
    const Tensor channels = reshape(wide, {x.size(0), x.size(1), x.count() / x.size(0) / x.size(1)});
    const auto [y, average, variance] = normalised_channels(channels, wide_parameter(weight), wide_parameter(bias), eps);
    move_towards(running_mean, average, momentum);
    move_towards(running_var, mul(variance, count / (count - 1)), momentum);
    return cast(reshape(y, x.shape()), x.dtype());
  }
  const Shape shape = channel_shape(x);
  const Tensor centred = sub(wide, reshape(at_least_f32(running_mean), shape));
  Tensor scale = div(1, sqrt(add(at_least_f32(running_var), eps)));
  if (weight.defined()) scale = mul(scale, at_least_f32(weight));
  return scaled(mul(centred, reshape(scale, shape)), {}, bias, shape, x.dtype());
}

namespace {
// A parameter of each channel, for each x[n, c].
Tensor of_instances(const Tensor& given, int64_t n) {
  return given.defined() ? reshape(expand(at_least_f32(given), {n, given.count()}), {-1}) : given;
}
}  // namespace

Tensor instance_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight,
                     const Tensor& bias, bool use_input_stats, double momentum, double eps) {
  if (autocasting()) [[unlikely]] {
    const auto normalised = [&](const Tensor& wide) {
      return instance_norm(wide, running_mean, running_var, weight, bias, use_input_stats, momentum, eps);
    };
    return in_f32(normalised, x);
  }
  if (!use_input_stats) return batch_norm(x, running_mean, running_var, weight, bias, false, momentum, eps);
  require_channels("instance_norm", x, weight, bias);
  require_shape("instance_norm", "running_mean", running_mean, {x.size(1)});
  require_shape("instance_norm", "running_var", running_var, {x.size(1)});
  int64_t count = 1;
  for (int i = 2; i < x.rank(); ++i) count *= x.size(i);
  if (count <= 1)
    refuse("instance_norm", "x has shape " + x.shape().text() + ": expected more than one element for each channel");
  const int64_t n = x.size(0);
  const Tensor instances = reshape(at_least_f32(x), {1, n * x.size(1), count});
  const auto [y, average, variance] = normalised_channels(instances, of_instances(weight, n), of_instances(bias, n), eps);
  const double correction = static_cast<double>(count) / static_cast<double>(count - 1);
  move_towards(running_mean, mean(reshape(average, {n, x.size(1)}), {0}), momentum);
  move_towards(running_var, mul(mean(reshape(variance, {n, x.size(1)}), {0}), correction), momentum);
  return cast(reshape(y, x.shape()), x.dtype());
}

Tensor local_response_norm(const Tensor& x, int64_t size, double alpha, double beta, double k) {
  if (autocasting()) [[unlikely]]
    return in_f32(local_response_norm, x, size, alpha, beta, k);
  constexpr const char* kName = "local_response_norm";
  require_floating(kName, x);
  if (x.rank() < 3 || size < 1)
    refuse(kName, "x has shape " + x.shape().text() + " and size is " + std::to_string(size) +
                      ": expected (n, c, ..) with three axes or more, and a size of 1 or more");
  return rounded_once(x, [&](const Tensor& wide) {
    const Tensor last = movedim(mul(wide, wide), {1}, {-1});
    const Tensor windows = unfold(pad(last, {size / 2, (size - 1) / 2}), -1, size, 1);
    const Tensor sums = movedim(div(sum(windows, {-1}), static_cast<double>(size)), {-1}, {1});
    return div(wide, pow(add(mul(sums, alpha), k), beta));
  });
}

}  // namespace plugrad
