#include <core/ops/fused_norms.hpp>

#include <core/ops/backward.hpp>
#include <core/ops/run.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/autograd/function.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/gradients.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/views.hpp>

#include <algorithm>
#include <memory>

namespace plugrad {
namespace {
plugrad_norm attributes_of(double eps) { return {sizeof(plugrad_norm), 0, eps}; }
Tensor like(Op op, const Tensor& x) { return empty_like(op, device_of(x), view_of(x), dtype_of(x)); }

// The gradients of y = scale (x - mean) weight + bias, composed of differentiable ops. The statistics are over `rows`,
// weight and bias lie along the remaining axes; all tensors have at least the precision of f32.
struct ComposedGradients {
  ComposedGradients(const Tensor& g, const Tensor& x, const Tensor& weight, const Shape& rows, double eps, bool centred)
      : grad(g) {
    const Tensor from_mean = centred ? sub(x, mean(x, rows, true)) : x;
    const Tensor scale = div(1, sqrt(add(mean(mul(from_mean, from_mean), rows, true), eps)));
    normal = mul(from_mean, scale);
    const Tensor inner = mul(g, weight), along = mul(normal, mean(mul(inner, normal), rows, true));
    const Tensor outer = centred ? sub(inner, mean(inner, rows, true)) : inner;
    x_grad = mul(scale, sub(outer, along));
  }
  Tensor weight_grad(const Shape& axes) const { return sum(mul(grad, normal), axes); }
  Tensor bias_grad(const Shape& axes) const { return sum(grad, axes); }
  Tensor grad, normal, x_grad;
};

// The gradients of x (n, d), weight and, if it is centred, bias (d).
std::vector<Tensor> row_norm_gradients(const Tensor& grad, const Tensor& x, const Tensor& weight, double eps, bool centred) {
  if (may_fuse()) {
    const plugrad_norm attributes = attributes_of(eps);
    const Op op = centred ? Op::LAYER_NORM_BACKWARD : Op::RMS_NORM_BACKWARD;
    std::vector<Tensor> all = {like(op, x), like(op, weight)};
    if (centred) all.push_back(like(op, weight));
    const bool done = centred ? try_run(op, {all[0], all[1], all[2]}, {grad, x, weight}, attributes)
                              : try_run(op, {all[0], all[1]}, {grad, x, weight}, attributes);
    if (done) return all;
    count_decomposition(x);
  }
  const ComposedGradients g(at_least_f32(grad), at_least_f32(x), at_least_f32(weight), {1}, eps, centred);
  std::vector<Tensor> all = {cast(g.x_grad, x.dtype()), cast(g.weight_grad({0}), x.dtype())};
  if (centred) all.push_back(cast(g.bias_grad({0}), x.dtype()));
  return all;
}

// The gradients of x (n, c, s), weight and bias (c).
std::vector<Tensor> channel_norm_gradients(const Tensor& grad, const Tensor& x, const Tensor& weight, const Tensor& mean,
                                           const Tensor& variance, double eps) {
  if (may_fuse()) {
    const plugrad_norm attributes = attributes_of(eps);
    constexpr Op kOp = Op::BATCH_NORM_BACKWARD;
    const std::vector<Tensor> all = {like(kOp, x), like(kOp, weight), like(kOp, weight)};
    if (try_run(kOp, {all[0], all[1], all[2]}, {grad, x, weight, mean, variance}, attributes)) return all;
    count_decomposition(x);
  }
  const ComposedGradients g(grad, x, unsqueeze(weight, 1), {0, 2}, eps, true);
  return {g.x_grad, g.weight_grad({0, 2}), g.bias_grad({0, 2})};
}

// A call of LAYER_NORM or RMS_NORM with a known result y. The inputs are x, weight and, if it is centred, bias.
class RowNormCall final : public Function {
 public:
  RowNormCall(Tensor y, double eps, bool centred) : y_(std::move(y)), eps_(eps), centred_(centred) {}
  std::string name() const override { return centred_ ? "layer_norm" : "rms_norm"; }
  std::vector<Tensor> forward(const std::vector<Tensor>& inputs) override {
    save_for_backward({inputs[0], inputs[1]});
    return {std::move(y_)};
  }
  std::vector<Tensor> backward(const std::vector<Tensor>& grads) override {
    const std::vector<Tensor> saved = saved_tensors();
    return row_norm_gradients(grads[0], saved[0], saved[1], eps_, centred_);
  }

 private:
  Tensor y_;
  double eps_;
  bool centred_;
};

// A call of BATCH_NORM with known results. The inputs are x, weight, bias.
class BatchNormCall final : public Function {
 public:
  BatchNormCall(NormalisedChannels results, double eps) : results_(std::move(results)), eps_(eps) {}
  std::string name() const override { return "batch_norm"; }
  std::vector<Tensor> forward(const std::vector<Tensor>& inputs) override {
    save_for_backward({inputs[0], inputs[1], results_.mean, results_.variance});
    return {std::move(results_.y)};
  }
  std::vector<Tensor> backward(const std::vector<Tensor>& grads) override {
    const std::vector<Tensor> saved = saved_tensors();
    return channel_norm_gradients(grads[0], saved[0], saved[1], saved[2], saved[3], eps_);
  }

 private:
  NormalisedChannels results_;
  double eps_;
};

Tensor recorded(const std::shared_ptr<Function>& call, const Tensor& y, const std::vector<Tensor>& inputs) {
  const auto tracked = [](const Tensor& each) { return each.requires_grad(); };
  if (!recording() || std::ranges::none_of(inputs, tracked)) return y;
  return apply_function(call, inputs)[0];
}

// Rows of one shape for a norm, or an error.
Tensor rows_for(const char* name, const Tensor& grad, const Tensor& x, const Shape& normalized_shape, const Tensor& weight) {
  require_gradient_alike(name, grad, x);
  bool fits = !normalized_shape.empty() && normalized_shape.rank() <= x.rank();
  for (int i = 1; fits && i <= normalized_shape.rank(); ++i)
    fits = normalized_shape[normalized_shape.size() - static_cast<size_t>(i)] == x.size(-i);
  if (!fits || (weight.defined() && weight.shape() != normalized_shape))
    refuse(name, "x is " + x.shape().text() + ", normalized_shape " + normalized_shape.text() +
                     (weight.defined() ? " and weight " + weight.shape().text() : "") +
                     ": expected the last extents of x for both");
  if (weight.defined()) require_together(name, x, weight);
  const int64_t n = normalized_shape.count();
  return weight.defined() ? reshape(weight, {n}) : full({n}, 1, x.dtype(), x.device());
}

NormGradients gradients_of_rows(const char* name, const Tensor& grad, const Tensor& x, const Shape& normalized_shape,
                                const Tensor& weight, double eps, bool centred) {
  const NoGrad unrecorded;
  const Tensor factors = rows_for(name, grad, x, normalized_shape, weight);
  if (!x.count()) {
    const Tensor none = zeros(normalized_shape, x.dtype(), x.device());
    return {zeros(x.shape(), x.dtype(), x.device()), none, centred ? clone(none) : Tensor()};
  }
  const Shape rows{-1, normalized_shape.count()};
  const std::vector<Tensor> all = row_norm_gradients(reshape(grad, rows), reshape(x, rows), factors, eps, centred);
  return {reshape(all[0], x.shape()), reshape(all[1], normalized_shape),
          centred ? reshape(all[2], normalized_shape) : Tensor()};
}
}  // namespace

NormGradients layer_norm_backward(const Tensor& grad, const Tensor& x, const Shape& normalized_shape, const Tensor& weight,
                                  double eps) {
  return gradients_of_rows("layer_norm_backward", grad, x, normalized_shape, weight, eps, true);
}
NormGradients rms_norm_backward(const Tensor& grad, const Tensor& x, const Shape& normalized_shape, const Tensor& weight,
                                double eps) {
  return gradients_of_rows("rms_norm_backward", grad, x, normalized_shape, weight, eps, false);
}

NormGradients batch_norm_backward(const Tensor& grad, const Tensor& x, const Tensor& weight, const Tensor& mean,
                                  const Tensor& variance, double eps) {
  constexpr const char* kName = "batch_norm_backward";
  require_gradient_alike(kName, grad, x);
  if (x.rank() < 2) refuse(kName, "x is " + x.shape().text() + ": expected (n, c, ..)");
  const int64_t c = x.size(1);
  for (const Tensor* each : {&weight, &mean, &variance}) {
    if (each == &weight && !weight.defined()) continue;
    require_floating(kName, *each);
    if (each->shape() != Shape{c} || &device_of(*each) != &device_of(x))
      refuse(kName, "weight, mean or variance is " + each->shape().text() + ": expected (" + std::to_string(c) +
                        ",) on the device of x");
  }
  const NoGrad unrecorded;
  const Tensor wide = at_least_f32(x);
  const auto of_channels = [&](const Tensor& each) { return cast(each, wide.dtype()); };
  const Tensor factors = weight.defined() ? of_channels(weight) : full({c}, 1, wide.dtype(), x.device());
  const Shape channels{x.size(0), c, x.count() ? x.count() / x.size(0) / c : 0};
  std::vector<Tensor> all{zeros(channels, wide.dtype(), x.device()), zeros({c}, wide.dtype(), x.device()),
                          zeros({c}, wide.dtype(), x.device())};
  if (x.count())
    all = channel_norm_gradients(reshape(at_least_f32(grad), channels), reshape(wide, channels), factors, of_channels(mean),
                                 of_channels(variance), eps);
  const DType of_weight = weight.defined() ? weight.dtype() : wide.dtype();
  return {cast(reshape(all[0], x.shape()), x.dtype()), cast(all[1], of_weight), cast(all[2], of_weight)};
}

Tensor fused_layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  const plugrad_norm attributes = attributes_of(eps);
  const Tensor y = like(Op::LAYER_NORM, x);
  if (!try_run(Op::LAYER_NORM, {y}, {x, weight, bias}, attributes)) {
    count_decomposition(x);
    return {};
  }
  return recorded(std::make_shared<RowNormCall>(y, eps, true), y, {x, weight, bias});
}

Tensor fused_rms_norm(const Tensor& x, const Tensor& weight, double eps) {
  const plugrad_norm attributes = attributes_of(eps);
  const Tensor y = like(Op::RMS_NORM, x);
  if (!try_run(Op::RMS_NORM, {y}, {x, weight}, attributes)) {
    count_decomposition(x);
    return {};
  }
  return recorded(std::make_shared<RowNormCall>(y, eps, false), y, {x, weight});
}

NormalisedChannels fused_batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  constexpr Op kOp = Op::BATCH_NORM;
  const plugrad_norm attributes = attributes_of(eps);
  NormalisedChannels results{like(kOp, x), like(kOp, weight), like(kOp, weight)};
  if (!try_run(kOp, {results.y, results.mean, results.variance}, {x, weight, bias}, attributes)) {
    count_decomposition(x);
    return {};
  }
  results.y = recorded(std::make_shared<BatchNormCall>(results, eps), results.y, {x, weight, bias});
  return results;
}

}  // namespace plugrad
