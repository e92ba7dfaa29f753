#include <core/io/onnx/ops/named_activations.hpp>
#include <core/io/onnx/ops/shape_parts.hpp>
#include <core/io/onnx/ops/tables.hpp>
#include <plugrad/ops/activations.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/piecewise.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/smooth.hpp>
#include <plugrad/ops/statistics.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/error.hpp>

#include <limits>

namespace plugrad::io::onnx {

Tensor named_activation(const Call& c, const Tensor& x) {
  const std::string name = c.text("activation", "");
  const std::vector<double> all = c.reals("activation_params");
  const auto number = [&](size_t i, const char* attribute, double otherwise) {
    return i < all.size() ? all[i] : c.real(attribute, otherwise);
  };
  if (name.empty()) return x;
  if (name == "Relu") return relu(x);
  if (name == "Tanh") return tanh(x);
  if (name == "Sigmoid") return sigmoid(x);
  if (name == "LeakyRelu") return leaky_relu(x, number(0, "activation_alpha", 0.01));
  if (name == "Clip") return clamp(x, number(0, "activation_alpha", 0), number(1, "activation_beta", 1));
  if (name == "HardSigmoid")
    return clamp(add(mul(x, number(0, "activation_alpha", 0.2)), number(1, "activation_beta", 0.5)), 0, 1);
  throw Error(Code::unsupported, "the activation '" + name + "' is not supported");
}

namespace {

template <Tensor (*F)(const Tensor&)> Value activation(Call& c) { return c.like(F(c.tensor(0))); }

Tensor softmax_of(const Tensor& x, int axis) { return softmax(x, axis); }
Tensor log_softmax_of(const Tensor& x, int axis) { return log_softmax(x, axis); }
Tensor hardmax_of(const Tensor& x, int axis) {
  const Tensor index = argmax(x, {axis}, true);
  const Shape shape = shape_along(x.rank(), axis, x.size(axis));
  return cast(eq(reshape(arange(0, x.size(axis), 1, DType::i64, x.device()), shape), index), x.dtype());
}

// Before version 13, all axes from `axis` on are one.
template <Tensor (*F)(const Tensor&, int)> Value normalized(Call& c) {
  const Tensor& x = c.tensor(0);
  if (c.opset() >= 13) return c.like(F(x, Call::axis(c.integer("axis", -1), x.rank())));
  const int first = Call::axis(c.integer("axis", 1), std::max(x.rank(), 1));
  return c.like(reshape(F(reshape(x, matrix_shape(x.shape(), first)), 1), x.shape()));
}

Value scaled_elu(Call& c) {
  const double alpha = c.real("alpha", 1.67326319217681884765625), gamma = c.real("gamma", 1.05070102214813232421875);
  return c.like(mul(elu(c.tensor(0), alpha), gamma));
}

Value hard_sigmoid(Call& c) { return c.like(clamp(add(mul(c.tensor(0), c.real("alpha", 0.2)), c.real("beta", 0.5)), 0, 1)); }

Value swish(Call& c) {
  const Tensor& x = c.tensor(0);
  const double alpha = c.real("alpha", 1);
  return c.like(alpha == 1 ? silu(x) : mul(x, sigmoid(mul(x, alpha))));
}

Value gaussian(Call& c) {
  return c.like(gelu(c.tensor(0), c.text("approximate", "none") == "tanh" ? Approximation::tanh : Approximation::none));
}

// Slopes of one axis may belong to the channels, as in version 6 and earlier.
Value parametric_relu(Call& c) {
  const Tensor& x = c.tensor(0);
  Tensor slope = c.tensor(1);
  if (slope.rank() == 1 && slope.size(0) > 1 && x.rank() > 2 && slope.size(0) == x.size(1) && slope.size(0) != x.size(-1)) {
    slope = reshape(slope, shape_along(x.rank() - 1, 0, slope.size(0)));
  }
  return c.like(where(ge(x, 0), x, mul(x, slope)));
}

Value shrink(Call& c) {
  const double lambd = c.real("lambd", 0.5), bias = c.real("bias", 0);
  const Tensor x = c.floating(0) ? c.tensor(0) : cast(c.tensor(0), DType::f64);
  return c.like(where(lt(x, -lambd), add(x, bias), where(gt(x, lambd), sub(x, bias), zeros_like(x))));
}

Value clip(Call& c) {
  Tensor x = c.tensor(0);
  if (c.opset() < 11) {
    if (c.has_attribute("min")) x = maximum(x, c.real("min", 0));
    return c.like(c.has_attribute("max") ? minimum(x, c.real("max", 0)) : x);
  }
  const auto plain = [&](size_t i) { return !c.has(i) || (c.known(i) && c.floating(0)); };
  if (plain(1) && plain(2)) {
    const double infinity = std::numeric_limits<double>::infinity();
    const double low = c.has(1) ? c.real(size_t{1}) : -infinity, high = c.has(2) ? c.real(size_t{2}) : infinity;
    if (low <= high) return c.like(clamp(x, low, high));
  }
  if (c.has(1)) x = maximum(x, c.tensor(1));
  if (c.has(2)) x = minimum(x, c.tensor(2));
  return c.like(x);
}

constexpr Operator kActivations[] = {
    {"Relu", activation<relu>},
    {"Tanh", activation<tanh>},
    {"Sigmoid", activation<sigmoid>},
    {"Mish", activation<mish>},
    {"Softsign", activation<softsign>},
    {"HardSwish", activation<hardswish>},
    {"Softplus", [](Call& c) { return c.like(softplus(c.tensor(0))); }},
    {"LeakyRelu", [](Call& c) { return c.like(leaky_relu(c.tensor(0), c.real("alpha", 0.01))); }},
    {"Elu", [](Call& c) { return c.like(elu(c.tensor(0), c.real("alpha", 1))); }},
    {"Celu", [](Call& c) { return c.like(celu(c.tensor(0), c.real("alpha", 1))); }},
    {"ThresholdedRelu", [](Call& c) { return c.like(threshold(c.tensor(0), c.real("alpha", 1), 0)); }},
    {"Selu", scaled_elu},
    {"HardSigmoid", hard_sigmoid},
    {"Swish", swish},
    {"Gelu", gaussian},
    {"PRelu", parametric_relu},
    {"Shrink", shrink},
    {"Clip", clip},
    {"Softmax", normalized<softmax_of>},
    {"LogSoftmax", normalized<log_softmax_of>},
    {"Hardmax", normalized<hardmax_of>},
};
}  // namespace

std::span<const Operator> activation_operators() { return kActivations; }

}  // namespace plugrad::io::onnx
