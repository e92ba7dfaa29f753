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
// An uninitialised statistic for n rows or channels of x.
Tensor statistic(Op op, const Tensor& x, int64_t n) { return empty(op, device_of(x), {n}, accumulator_dtype(dtype_of(x))); }

// The gradients of y = normal weight + bias, with normal = scale from_mean, composed of differentiable ops. The statistics
// are over `rows`, weight and bias lie along the remaining axes; all tensors have at least the precision of f32.
struct ComposedGradients {
  ComposedGradients(const Tensor& g, const Tensor& from_mean, const Tensor& scale, const Tensor& weight, const Shape& rows,
                    bool centred)
      : grad(g), normal(mul(from_mean, scale)) {
    const Tensor inner = mul(g, weight), along = mul(normal, mean(mul(inner, normal), rows, true));
    const Tensor outer = centred ? sub(inner, mean(inner, rows, true)) : inner;
    x_grad = mul(scale, sub(outer, along));
  }
  // The same with the statistics of x, differentiable too.
  static ComposedGradients of(const Tensor& g, const Tensor& x, const Tensor& weight, const Shape& rows, double eps,
                              bool centred) {
    const Tensor from_mean = centred ? sub(x, mean(x, rows, true)) : x;
    const Tensor scale = div(1, sqrt(add(mean(mul(from_mean, from_mean), rows, true), eps)));
    return ComposedGradients(g, from_mean, scale, weight, rows, centred);
  }
  Tensor weight_grad(const Shape& axes) const { return sum(mul(grad, normal), axes); }
  Tensor bias_grad(const Shape& axes) const { return sum(grad, axes); }
  Tensor grad, normal, x_grad;
};

// The statistics of rows; mean is undefined without one.
struct RowStatistics {
  Tensor mean, rstd;
};

// The gradients of x (n, d), weight and, if it is centred, bias (d). Empty if the device lacks the op.
std::vector<Tensor> native_row_gradients(const Tensor& grad, const Tensor& x, const Tensor& weight,
                                         const RowStatistics& rows) {
  const bool centred = rows.mean.defined();
  const Op op = centred ? Op::LAYER_NORM_BACKWARD : Op::RMS_NORM_BACKWARD;
  std::vector<Tensor> all = {like(op, x), like(op, weight)};
  if (centred) all.push_back(like(op, weight));
  const bool done = centred ? try_run(op, {all[0], all[1], all[2]}, {grad, x, weight, rows.mean, rows.rstd})
                            : try_run(op, {all[0], all[1]}, {grad, x, weight, rows.rstd});
  if (done) return all;
  count_decomposition(x);
  return {};
}

std::vector<Tensor> listed_rows(const ComposedGradients& g, DType of_x, DType of_weight, bool centred) {
  std::vector<Tensor> all = {cast(g.x_grad, of_x), cast(g.weight_grad({0}), of_weight)};
  if (centred) all.push_back(cast(g.bias_grad({0}), of_weight));
  return all;
}

// The same; composed of differentiable ops if a second derivative is needed or the device lacks the op.
std::vector<Tensor> row_norm_gradients(const Tensor& grad, const Tensor& x, const Tensor& weight, const RowStatistics& rows,
                                       double eps) {
  if (may_fuse())
    if (std::vector<Tensor> all = native_row_gradients(grad, x, weight, rows); !all.empty()) return all;
  const bool centred = rows.mean.defined();
  const auto g = ComposedGradients::of(at_least_f32(grad), at_least_f32(x), at_least_f32(weight), {1}, eps, centred);
  return listed_rows(g, x.dtype(), x.dtype(), centred);
}

// The gradients of x (n, c, s), weight and bias (c). Empty if the device lacks the op.
std::vector<Tensor> native_channel_gradients(const Tensor& grad, const Tensor& x, const Tensor& weight, const Tensor& mean,
                                             const Tensor& variance, double eps) {
  const plugrad_norm attributes = attributes_of(eps);
  constexpr Op kOp = Op::BATCH_NORM_BACKWARD;
  std::vector<Tensor> all = {like(kOp, x), like(kOp, weight), like(kOp, weight)};
  if (try_run(kOp, {all[0], all[1], all[2]}, {grad, x, weight, mean, variance}, attributes)) return all;
  count_decomposition(x);
  return {};
}
std::vector<Tensor> listed_channels(const ComposedGradients& g) {
  return {g.x_grad, g.weight_grad({0, 2}), g.bias_grad({0, 2})};
}

// A call of LAYER_NORM or RMS_NORM with a known result y. The inputs are x, weight and, if it is centred, bias.
class RowNormCall final : public Function {
 public:
  RowNormCall(Tensor y, RowStatistics rows, double eps, bool centred)
      : y_(std::move(y)), rows_(std::move(rows)), eps_(eps), centred_(centred) {}
  std::string name() const override { return centred_ ? "layer_norm" : "rms_norm"; }
  std::vector<Tensor> forward(const std::vector<Tensor>& inputs) override {
    std::vector<Tensor> saved{inputs[0], inputs[1], rows_.rstd};
    if (centred_) saved.push_back(rows_.mean);
    save_for_backward(std::move(saved));
    rows_ = {};
    return {std::move(y_)};
  }
  std::vector<Tensor> backward(const std::vector<Tensor>& grads) override {
    const std::vector<Tensor> saved = saved_tensors();
    return row_norm_gradients(grads[0], saved[0], saved[1], {centred_ ? saved[3] : Tensor(), saved[2]}, eps_);
  }

 private:
  Tensor y_;
  RowStatistics rows_;
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
    if (may_fuse())
      if (std::vector<Tensor> all = native_channel_gradients(grads[0], saved[0], saved[1], saved[2], saved[3], eps_);
          !all.empty())
        return all;
    return listed_channels(ComposedGradients::of(grads[0], saved[0], unsqueeze(saved[1], 1), {0, 2}, eps_, true));
  }

 private:
  NormalisedChannels results_;
  double eps_;
};

template <class Call> Tensor recorded(const Tensor& y, const std::vector<Tensor>& inputs, Call call) {
  const auto tracked = [](const Tensor& each) { return each.requires_grad(); };
  if (!recording() || std::ranges::none_of(inputs, tracked)) return y;
  return apply_function(call(), inputs)[0];
}

// Checks the operands of a gradient of rows.
void require_rows(const char* name, const Tensor& grad, const Tensor& x, const Shape& normalized_shape,
                  const Tensor& weight) {
  require_gradient_alike(name, grad, x);
  bool fits = !normalized_shape.empty() && normalized_shape.rank() <= x.rank();
  for (int i = 1; fits && i <= normalized_shape.rank(); ++i)
    fits = normalized_shape[normalized_shape.size() - static_cast<size_t>(i)] == x.size(-i);
  if (!fits || (weight.defined() && weight.shape() != normalized_shape))
    refuse(name, "x is " + x.shape().text() + ", normalized_shape " + normalized_shape.text() +
                     (weight.defined() ? " and weight " + weight.shape().text() : "") +
                     ": expected the last extents of x for both");
  if (weight.defined()) require_floating(name, weight);
  if (weight.defined() && &device_of(weight) != &device_of(x)) throw_not_together(name, x, weight);
}

// A statistic of n rows, in the dtype of statistics.
Tensor row_statistic(const char* name, const Tensor& given, const Tensor& x, int64_t n) {
  require_floating(name, given);
  if (given.count() != n || &device_of(given) != &device_of(x))
    refuse(name, "mean or rstd is " + given.shape().text() + ": expected one element for each of the " + std::to_string(n) +
                     " rows, on the device of x");
  return reshape(cast(given, accumulator_of(x.dtype())), {n});
}

NormGradients gradients_of_rows(const char* name, const Tensor& grad, const Tensor& x, const Shape& normalized_shape,
                                const Tensor& weight, const Tensor* mean, const Tensor& rstd) {
  const WithoutGraph plainly;
  require_rows(name, grad, x, normalized_shape, weight);
  const int64_t d = normalized_shape.count();
  const DType of_weight = weight.defined() ? weight.dtype() : x.dtype();
  if (!x.count()) {
    const Tensor none = zeros(normalized_shape, of_weight, x.device());
    return {zeros(x.shape(), x.dtype(), x.device()), none, mean ? clone(none) : Tensor()};
  }
  const int64_t n = x.count() / d;
  const RowStatistics rows{mean ? row_statistic(name, *mean, x, n) : Tensor(), row_statistic(name, rstd, x, n)};
  const Tensor factors = weight.defined() ? reshape(weight, {d}) : full({d}, 1, x.dtype(), x.device());
  const Tensor grads = reshape(grad, {n, d}), all_rows = reshape(x, {n, d});
  std::vector<Tensor> all;
  if (of_weight == x.dtype()) all = native_row_gradients(grads, all_rows, factors, rows);
  if (all.empty()) {
    const Tensor wide = at_least_f32(all_rows), from_mean = mean ? sub(wide, unsqueeze(rows.mean, 1)) : wide;
    const ComposedGradients g(at_least_f32(grads), from_mean, unsqueeze(rows.rstd, 1), at_least_f32(factors), {1}, mean);
    all = listed_rows(g, x.dtype(), of_weight, mean);
  }
  return {reshape(all[0], x.shape()), reshape(all[1], normalized_shape),
          mean ? reshape(all[2], normalized_shape) : Tensor()};
}
}  // namespace

NormGradients layer_norm_backward(const Tensor& grad, const Tensor& x, const Shape& normalized_shape, const Tensor& weight,
                                  const Tensor& mean, const Tensor& rstd) {
  return gradients_of_rows("layer_norm_backward", grad, x, normalized_shape, weight, &mean, rstd);
}
NormGradients rms_norm_backward(const Tensor& grad, const Tensor& x, const Shape& normalized_shape, const Tensor& weight,
                                const Tensor& rstd) {
  return gradients_of_rows("rms_norm_backward", grad, x, normalized_shape, weight, nullptr, rstd);
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
  const WithoutGraph plainly;
  const Tensor wide = at_least_f32(x);
  const auto of_channels = [&](const Tensor& each) { return cast(each, wide.dtype()); };
  const Tensor factors = weight.defined() ? of_channels(weight) : full({c}, 1, wide.dtype(), x.device());
  const Shape channels{x.size(0), c, x.count() ? x.count() / x.size(0) / c : 0};
  const DType of_weight = weight.defined() ? weight.dtype() : x.dtype();
  if (!x.count()) {
    const Tensor none = zeros({c}, of_weight, x.device());
    return {zeros(x.shape(), x.dtype(), x.device()), none, clone(none)};
  }
  const Tensor grads = reshape(at_least_f32(grad), channels), images = reshape(wide, channels);
  const Tensor means = of_channels(mean), variances = of_channels(variance);
  std::vector<Tensor> all = native_channel_gradients(grads, images, factors, means, variances, eps);
  if (all.empty()) {
    const Tensor scale = div(1, sqrt(add(variances, eps))), from_mean = sub(images, unsqueeze(means, 1));
    all = listed_channels(ComposedGradients(grads, from_mean, unsqueeze(scale, 1), unsqueeze(factors, 1), {0, 2}, true));
  }
  return {cast(reshape(all[0], x.shape()), x.dtype()), cast(all[1], of_weight), cast(all[2], of_weight)};
}

NormalisedRows fused_layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  const plugrad_norm attributes = attributes_of(eps);
  constexpr Op kOp = Op::LAYER_NORM;
  const Tensor y = like(kOp, x);
  const RowStatistics rows{statistic(kOp, x, x.size(0)), statistic(kOp, x, x.size(0))};
  if (!try_run(kOp, {y, rows.mean, rows.rstd}, {x, weight, bias}, attributes)) {
    count_decomposition(x);
    return {};
  }
  return {recorded(y, {x, weight, bias}, [&] { return std::make_shared<RowNormCall>(y, rows, eps, true); }), rows.mean,
          rows.rstd};
}

NormalisedRows fused_rms_norm(const Tensor& x, const Tensor& weight, double eps) {
  const plugrad_norm attributes = attributes_of(eps);
  const Tensor y = like(Op::RMS_NORM, x);
  const RowStatistics rows{{}, statistic(Op::RMS_NORM, x, x.size(0))};
  if (!try_run(Op::RMS_NORM, {y, rows.rstd}, {x, weight}, attributes)) {
    count_decomposition(x);
    return {};
  }
  return {recorded(y, {x, weight}, [&] { return std::make_shared<RowNormCall>(y, rows, eps, false); }), {}, rows.rstd};
}

NormalisedChannels fused_batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  constexpr Op kOp = Op::BATCH_NORM;
  const plugrad_norm attributes = attributes_of(eps);
  NormalisedChannels results{like(kOp, x), statistic(kOp, x, x.size(1)), statistic(kOp, x, x.size(1))};
  if (!try_run(kOp, {results.y, results.mean, results.variance}, {x, weight, bias}, attributes)) {
    count_decomposition(x);
    return {};
  }
  results.y = recorded(results.y, {x, weight, bias}, [&] { return std::make_shared<BatchNormCall>(results, eps); });
  return results;
}

}  // namespace plugrad
