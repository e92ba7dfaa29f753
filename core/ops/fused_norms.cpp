#include <core/ops/fused_norms.hpp>

#include <core/ops/argument.hpp>
#include <core/ops/run.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/autograd/function.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
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
    if (may_fuse())
      if (std::vector<Tensor> all = fused(grads[0], saved[0], saved[1]); !all.empty()) return all;
    return composed(grads[0], saved[0], saved[1]);
  }

 private:
  // Empty if the device lacks the op.
  std::vector<Tensor> fused(const Tensor& grad, const Tensor& x, const Tensor& weight) const {
    const plugrad_norm attributes = attributes_of(eps_);
    const Op op = centred_ ? Op::LAYER_NORM_BACKWARD : Op::RMS_NORM_BACKWARD;
    std::vector<Tensor> all = {like(op, x), like(op, weight)};
    if (centred_) all.push_back(like(op, weight));
    const bool done = centred_ ? try_run(op, {all[0], all[1], all[2]}, {grad, x, weight}, attributes)
                               : try_run(op, {all[0], all[1]}, {grad, x, weight}, attributes);
    if (done) return all;
    count_decomposition(x);
    return {};
  }
  std::vector<Tensor> composed(const Tensor& grad, const Tensor& x, const Tensor& weight) const {
    const ComposedGradients g(at_least_f32(grad), at_least_f32(x), at_least_f32(weight), {1}, eps_, centred_);
    std::vector<Tensor> all = {cast(g.x_grad, x.dtype()), cast(g.weight_grad({0}), x.dtype())};
    if (centred_) all.push_back(cast(g.bias_grad({0}), x.dtype()));
    return all;
  }

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
    if (may_fuse())
      if (std::vector<Tensor> all = fused(grads[0], saved); !all.empty()) return all;
    const Tensor weight = unsqueeze(saved[1], 1);
    const ComposedGradients g(grads[0], saved[0], weight, {0, 2}, eps_, true);
    return {g.x_grad, g.weight_grad({0, 2}), g.bias_grad({0, 2})};
  }

 private:
  std::vector<Tensor> fused(const Tensor& grad, const std::vector<Tensor>& saved) const {
    const plugrad_norm attributes = attributes_of(eps_);
    constexpr Op kOp = Op::BATCH_NORM_BACKWARD;
    const std::vector<Tensor> all = {like(kOp, saved[0]), like(kOp, saved[1]), like(kOp, saved[1])};
    if (try_run(kOp, {all[0], all[1], all[2]}, {grad, saved[0], saved[1], saved[2], saved[3]}, attributes)) return all;
    count_decomposition(saved[0]);
    return {};
  }

  NormalisedChannels results_;
  double eps_;
};

Tensor recorded(const std::shared_ptr<Function>& call, const Tensor& y, const std::vector<Tensor>& inputs) {
  const auto tracked = [](const Tensor& each) { return each.requires_grad(); };
  if (!recording() || std::ranges::none_of(inputs, tracked)) return y;
  return apply_function(call, inputs)[0];
}
}  // namespace

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
