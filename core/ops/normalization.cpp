#include <plugrad/ops/normalization.hpp>

#include <core/ops/argument.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/arrangement.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/views.hpp>

#include <cmath>

namespace plugrad {
namespace {
// Checks that x's last extents are these. Returns their axes.
Shape last_axes(const char* name, const Tensor& x, const Shape& extents) {
  Shape axes;
  bool fits = !extents.empty() && extents.rank() <= x.rank();
  for (int i = 0; fits && i < extents.rank(); ++i) {
    axes.push_back(i - extents.rank());
    fits = extents[static_cast<size_t>(i)] == x.size(i - extents.rank());
  }
  if (!fits) refuse(name, "x has shape " + x.shape().text() + ": expected its last extents to be " + extents.text());
  return axes;
}

void require_shape(const char* name, const char* role, const Tensor& x, const Shape& shape) {
  if (x.defined() && x.shape() != shape)
    refuse(name, std::string(role) + " has shape " + x.shape().text() + ": expected " + shape.text());
}

Tensor over_root(const Tensor& centred, const Tensor& variance, double eps) {
  return div(centred, sqrt(add(variance, eps)));
}

Tensor normalised(const Tensor& x, const Shape& axes, double eps) {
  const Tensor centred = sub(x, mean(x, axes, true));
  return over_root(centred, mean(mul(centred, centred), axes, true), eps);
}

// y times weight plus bias, both reshaped to `shape`, in the dtype of x.
Tensor scaled(Tensor y, const Tensor& weight, const Tensor& bias, const Shape& shape, DType dtype) {
  if (weight.defined()) y = mul(y, reshape(at_least_f32(weight), shape));
  if (bias.defined()) y = add(y, reshape(at_least_f32(bias), shape));
  return cast(y, dtype);
}

// (c, 1, 1, ..), which broadcasts along the channels of x.
Shape channel_shape(const Tensor& x) {
  Shape shape{x.size(1)};
  for (int i = 2; i < x.rank(); ++i) shape.push_back(1);
  return shape;
}

void require_channels(const char* name, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  require_floating(name, x);
  if (x.rank() < 2) refuse(name, "x has shape " + x.shape().text() + ": expected (n, c, ..)");
  require_shape(name, "weight", weight, {x.size(1)});
  require_shape(name, "bias", bias, {x.size(1)});
}
}  // namespace

Tensor layer_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight, const Tensor& bias, double eps) {
  require_floating("layer_norm", x);
  const Shape axes = last_axes("layer_norm", x, normalized_shape);
  require_shape("layer_norm", "weight", weight, normalized_shape);
  require_shape("layer_norm", "bias", bias, normalized_shape);
  return scaled(normalised(at_least_f32(x), axes, eps), weight, bias, normalized_shape, x.dtype());
}

Tensor rms_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight, std::optional<double> eps) {
  require_floating("rms_norm", x);
  const Shape axes = last_axes("rms_norm", x, normalized_shape);
  require_shape("rms_norm", "weight", weight, normalized_shape);
  const Tensor wide = at_least_f32(x), squares = mean(mul(wide, wide), axes, true);
  const double spacing = std::ldexp(1.0, 1 - dtype_info(static_cast<uint8_t>(x.dtype()))->digits);
  return scaled(over_root(wide, squares, eps.value_or(spacing)), weight, {}, normalized_shape, x.dtype());
}

Tensor group_norm(const Tensor& x, int64_t num_groups, const Tensor& weight, const Tensor& bias, double eps) {
  require_channels("group_norm", x, weight, bias);
  if (num_groups < 1 || x.size(1) % num_groups)
    refuse("group_norm", std::to_string(num_groups) + " groups do not divide the channels of " + x.shape().text() +
                             ": give a divisor of " + std::to_string(x.size(1)));
  if (!x.count()) return x;
  const Tensor groups = reshape(at_least_f32(x), {x.size(0), num_groups, -1});
  return scaled(reshape(normalised(groups, {-1}, eps), x.shape()), weight, bias, channel_shape(x), x.dtype());
}

// --- Batches.

namespace {
// Moves running towards value by the fraction momentum.
void move_towards(Tensor running, const Tensor& value, double momentum) {
  if (!running.defined()) return;
  const NoGrad unrecorded;
  const Tensor kept = mul(at_least_f32(running), 1 - momentum);
  running.copy_(add(kept, mul(reshape(value.detach(), running.shape()), momentum)));
}

// The batch's own statistics, which also move the running ones.
Tensor batch_normalised(const Tensor& x, const Tensor& running_mean, const Tensor& running_var, double momentum,
                        double eps) {
  Shape axes{0};
  for (int i = 2; i < x.rank(); ++i) axes.push_back(i);
  const double count = static_cast<double>(x.count()) / static_cast<double>(x.size(1));
  if (!(count > 1))
    refuse("batch_norm", "x has shape " + x.shape().text() + ": training needs more than one element per channel");
  const Tensor average = mean(x, axes, true), centred = sub(x, average), variance = mean(mul(centred, centred), axes, true);
  move_towards(running_mean, average, momentum);
  move_towards(running_var, mul(variance.detach(), count / (count - 1)), momentum);
  return over_root(centred, variance, eps);
}
}  // namespace

Tensor batch_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight,
                  const Tensor& bias, bool training, double momentum, double eps) {
  require_channels("batch_norm", x, weight, bias);
  require_shape("batch_norm", "running_mean", running_mean, {x.size(1)});
  require_shape("batch_norm", "running_var", running_var, {x.size(1)});
  if (!training && !(running_mean.defined() && running_var.defined()))
    refuse("batch_norm", "running_mean and running_var are missing: give both, or train");
  const Shape shape = channel_shape(x);
  if (training)
    return scaled(batch_normalised(at_least_f32(x), running_mean, running_var, momentum, eps), weight, bias, shape,
                  x.dtype());
  const Tensor centred = sub(at_least_f32(x), reshape(at_least_f32(running_mean), shape));
  return scaled(over_root(centred, reshape(at_least_f32(running_var), shape), eps), weight, bias, shape, x.dtype());
}

// --- Instances.

Tensor instance_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight,
                     const Tensor& bias, bool use_input_stats, double momentum, double eps) {
  if (!use_input_stats) return batch_norm(x, running_mean, running_var, weight, bias, false, momentum, eps);
  require_channels("instance_norm", x, weight, bias);
  require_shape("instance_norm", "running_mean", running_mean, {x.size(1)});
  require_shape("instance_norm", "running_var", running_var, {x.size(1)});
  Shape axes;
  double count = 1;
  for (int i = 2; i < x.rank(); ++i) {
    axes.push_back(i);
    count *= static_cast<double>(x.size(i));
  }
  if (!(count > 1))
    refuse("instance_norm", "x has shape " + x.shape().text() + ": expected more than one element for each channel");
  const Tensor wide = at_least_f32(x), average = mean(wide, axes, true), centred = sub(wide, average);
  const Tensor variance = mean(mul(centred, centred), axes, true);
  move_towards(running_mean, mean(average, {0}), momentum);
  move_towards(running_var, mul(mean(variance.detach(), {0}), count / (count - 1)), momentum);
  return scaled(over_root(centred, variance, eps), weight, bias, channel_shape(x), x.dtype());
}

Tensor local_response_norm(const Tensor& x, int64_t size, double alpha, double beta, double k) {
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
