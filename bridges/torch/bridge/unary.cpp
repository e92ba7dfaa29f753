// Elementwise ops of one tensor, and their gradients.
#include <ATen/Operators.h>
#include <bridge/adapt.hpp>
#include <plugrad/ops/activations.hpp>
#include <plugrad/ops/arithmetic.hpp>
#include <plugrad/ops/contractions.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/gradients.hpp>
#include <plugrad/ops/integers.hpp>
#include <plugrad/ops/logic.hpp>
#include <plugrad/ops/masks.hpp>
#include <plugrad/ops/piecewise.hpp>
#include <plugrad/ops/powers.hpp>
#include <plugrad/ops/rounding.hpp>
#include <plugrad/ops/smooth.hpp>
#include <plugrad/ops/special.hpp>
#include <plugrad/ops/special_values.hpp>
#include <plugrad/ops/trigonometry.hpp>

namespace plugrad_torch {
namespace o = at::_ops;
namespace {
using Unary = P (*)(const P&);

// Functions with floating results: whole numbers and bools are converted before.
P floating(const T& x) { return at::isFloatingType(x.scalar_type()) ? over(x) : over(x, at::kFloat); }
template <Unary kFunction> T& floating_out(const T& x, T& out) { return write(out, kFunction(floating(x))); }
// Whole numbers are their own floor, ceil, round and trunc.
template <Unary kFunction> T& rounded_out(const T& x, T& out) {
  return write(out, at::isFloatingType(x.scalar_type()) ? kFunction(over(x)) : plugrad::clone(over(x)));
}
T& round_decimals_out(const T& x, int64_t decimals, T& out) { return write(out, plugrad::round(over(x), decimals)); }

T& relu_(T& x) { return write(x, plugrad::relu(over(x))); }
plugrad::Approximation approximation(std::string_view how) {
  TORCH_CHECK(how == "tanh" || how == "none", "approximate argument must be either none or tanh.");
  return how == "tanh" ? plugrad::Approximation::tanh : plugrad::Approximation::none;
}
T& gelu_out(const T& x, std::string_view how, T& out) { return write(out, plugrad::gelu(over(x), approximation(how))); }

P as_out(const T& x, const T& out) { return over(x, out.scalar_type()); }
T& clamp_out(const T& x, const std::optional<Scalar>& min, const std::optional<Scalar>& max, T& out) {
  using Limit = std::optional<Number>;
  return write(out, plugrad::clamp(as_out(x, out), converted<Limit>(min), converted<Limit>(max)));
}
T& clamp_min_out(const T& x, const Scalar& min, T& out) {
  return write(out, plugrad::clamp(as_out(x, out), number_of(min), std::nullopt));
}
T& clamp_max_out(const T& x, const Scalar& max, T& out) {
  return write(out, plugrad::clamp(as_out(x, out), std::nullopt, number_of(max)));
}
P limit(const T& x, const T& out) {
  return is_number(x) ? plugrad::full({}, number_of(x.item()), dtype_of(out.scalar_type()), device_of(out.device()))
                      : as_out(x, out);
}
T& clamp_tensors_out(const T& x, const OptT& min, const OptT& max, T& out) {
  P y = as_out(x, out);
  if (min && min->defined()) y = plugrad::clamp_min(y, limit(*min, out));
  if (max && max->defined()) y = plugrad::clamp_max(y, limit(*max, out));
  return write(out, y);
}
T& clamp_min_tensor_out(const T& x, const T& min, T& out) {
  return write(out, plugrad::clamp_min(as_out(x, out), limit(min, out)));
}
T& clamp_max_tensor_out(const T& x, const T& max, T& out) {
  return write(out, plugrad::clamp_max(as_out(x, out), limit(max, out)));
}

T& addcmul_out(const T& x, const T& a, const T& b, const Scalar& value, T& out) {
  if (is_number(a) || is_number(b)) throw Unsupported{"a number as a factor"};
  return write(out, plugrad::addcmul(as_out(x, out), as_out(a, out), as_out(b, out), number_of(value)));
}
T& addcdiv_out(const T& x, const T& a, const T& b, const Scalar& value, T& out) {
  if (is_number(a) || is_number(b)) throw Unsupported{"a number as an operand"};
  return write(out, plugrad::addcdiv(as_out(x, out), as_out(a, out), as_out(b, out), number_of(value)));
}
T& lerp_scalar_out(const T& a, const T& b, const Scalar& weight, T& out) {
  return write(out, plugrad::lerp(over(a), over(b), weight.toDouble()));
}
T& lerp_tensor_out(const T& a, const T& b, const T& weight, T& out) {
  return write(out, is_number(weight) ? plugrad::lerp(over(a), over(b), weight.item().toDouble())
                                      : plugrad::lerp(over(a), over(b), over(weight)));
}
T& elu_out(const T& x, const Scalar& alpha, const Scalar& scale, const Scalar& input_scale, T& out) {
  P y = input_scale.equal(1) ? over(x) : plugrad::mul(over(x), number_of(input_scale));
  y = plugrad::elu(y, alpha.toDouble());
  if (!scale.equal(1) || !input_scale.equal(1)) {  // input_scale applies to the negative part only
    const P x_ = over(x), negative = plugrad::mul(y, number_of(scale));
    y = plugrad::where(plugrad::gt(x_, 0), plugrad::mul(x_, number_of(scale)), negative);
  }
  return write(out, y);
}
T& nan_to_num_out(const T& x, std::optional<double> nan, std::optional<double> above, std::optional<double> below, T& out) {
  return write(out, plugrad::nan_to_num(over(x), nan.value_or(0), above, below));
}
std::tuple<T&, T&> log_sigmoid_out(const T& x, T& out, T& buffer) {
  return {write(out, plugrad::logsigmoid(over(x))), write(buffer, plugrad::empty({0}, over(x).dtype(), over(x).device()))};
}
P between(const T& x, const Scalar& min, const Scalar& max) {
  const bool whole = at::isIntegralType(x.scalar_type(), false);
  const auto number = [&](const Scalar& value) { return whole ? Number(value.toLong()) : number_of(value); };
  return plugrad::clamp(over(x), number(min), number(max));
}
T hardtanh(const T& x, const Scalar& min, const Scalar& max) { return result(between(x, min, max)); }
T& hardtanh_out(const T& x, const Scalar& min, const Scalar& max, T& out) { return write(out, between(x, min, max)); }
T log_sigmoid_backward(const T& grad, const T& x, const T&) {
  return result(plugrad::mul(over(grad), plugrad::sigmoid(plugrad::neg(over(x)))));
}
T& log_sigmoid_backward_out(const T& grad, const T& x, const T&, T& out) {
  return write(out, plugrad::mul(over(grad), plugrad::sigmoid(plugrad::neg(over(x)))));
}
T& softplus_backward_out(const T& grad, const T& x, const Scalar& beta, const Scalar& threshold, T& out) {
  const P scaled = plugrad::mul(over(x), beta.toDouble()), g = over(grad);
  return write(out, plugrad::where(plugrad::gt(scaled, threshold.toDouble()), g, plugrad::mul(g, plugrad::sigmoid(scaled))));
}
T& leaky_relu_backward_out(const T& grad, const T& x, const Scalar& slope, bool, T& out) {
  const P g = over(grad);
  return write(out, plugrad::where(plugrad::gt(over(x), 0), g, plugrad::mul(g, slope.toDouble())));
}
T& hardtanh_backward_out(const T& grad, const T& x, const Scalar& min, const Scalar& max, T& out) {
  const P value = over(x);
  const P inside = plugrad::logical_and(plugrad::gt(value, min.toDouble()), plugrad::lt(value, max.toDouble()));
  return write(out, plugrad::where(inside, over(grad), 0));
}
T& elu_backward_out(const T& grad, const Scalar& alpha, const Scalar& scale, const Scalar& input_scale, bool is_result,
                    const T& x, T& out) {
  const P g = over(grad), value = over(x);
  const double a = alpha.toDouble() * scale.toDouble(), s = input_scale.toDouble();
  const P negative =
      is_result ? plugrad::mul(plugrad::add(value, a), s) : plugrad::mul(plugrad::exp(plugrad::mul(value, s)), a * s);
  return write(out, plugrad::mul(g, plugrad::where(plugrad::gt(value, 0), scale.toDouble(), negative)));
}

T masked_fill(const T& x, const T& mask, const Scalar& value) {
  return result(plugrad::masked_fill(over(x), over(mask), number_of(value)));
}
T& masked_fill_(T& x, const T& mask, const Scalar& value) {
  TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_fill_ only supports boolean masks, but got mask with dtype ",
              mask.scalar_type());
  return write(x, plugrad::masked_fill(over(x), over(mask), number_of(value)));
}

P dense_like(const P& grad, const P& x) { return grad.shape() == x.shape() ? grad : plugrad::expand(grad, x.shape()); }
T& threshold_out(const T& x, const Scalar& threshold, const Scalar& value, T& out) {
  const P y = over(x);
  return write(out, plugrad::where(plugrad::le(y, number_of(threshold)), number_of(value), y));
}
T& threshold_backward_out(const T& grad, const T& x, const Scalar& threshold, T& out) {
  const P value = over(x), g = over(grad);
  if (threshold.equal(0) && g.dtype() == value.dtype() && at::isFloatingType(x.scalar_type()))
    return write(out, plugrad::relu_backward(dense_like(g, value), value));
  return write(out, plugrad::where(plugrad::le(value, number_of(threshold)), 0, g));
}
template <auto kFunction> T& activation_backward_out(const T& grad, const T& value, T& out) {
  const P v = over(value);
  return write(out, kFunction(dense_like(over(grad), v), v));
}
T& gelu_backward_out(const T& grad, const T& x, std::string_view how, T& out) {
  const P value = over(x);
  return write(out, plugrad::gelu_backward(dense_like(over(grad), value), value, approximation(how)));
}
T hardswish_backward(const T& grad, const T& x) {
  const P value = over(x), g = over(grad);
  const P middle = plugrad::mul(g, plugrad::add(plugrad::div(value, 3), 0.5));
  return result(plugrad::where(plugrad::lt(value, -3), 0, plugrad::where(plugrad::le(value, 3), middle, g)));
}
T& hardsigmoid_backward_out(const T& grad, const T& x, T& out) {
  const P value = over(x);
  const P inside = plugrad::logical_and(plugrad::gt(value, -3), plugrad::lt(value, 3));
  return write(out, plugrad::where(inside, plugrad::div(over(grad), 6), 0));
}
T& hardshrink_out(const T& x, const Scalar& lambda, T& out) {
  const P value = over(x);  // a negative lambda leaves x as it is
  const P inside = plugrad::logical_and(plugrad::ge(value, -lambda.toDouble()), plugrad::le(value, lambda.toDouble()));
  return write(out, plugrad::where(inside, 0, value));
}
T& shrink_backward_out(const T& grad, const T& x, const Scalar& lambda, T& out) {
  const P inside = plugrad::le(plugrad::abs(over(x)), lambda.toDouble());
  return write(out, plugrad::where(inside, 0, over(grad)));
}
T isnan(const T& x) { return result(plugrad::isnan(over(x))); }
T& polygamma_out(int64_t n, const T& x, T& out) { return write(out, plugrad::polygamma(n, floating(x))); }
}  // namespace
}  // namespace plugrad_torch

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  using namespace plugrad_torch;
  adapted<o::neg_out, plugrad::neg>(library);
  adapted<o::abs_out, plugrad::abs>(library);
  adapted<o::sign_out, plugrad::sign>(library);
  adapted<o::signbit_out, plugrad::signbit>(library);
  adapted<o::silu_out, plugrad::silu>(library);
  adapted<o::mish_out, plugrad::mish>(library);
  adapted<o::logical_not_out, plugrad::logical_not>(library);
  adapted<o::isposinf_out, plugrad::isposinf>(library);
  adapted<o::isneginf_out, plugrad::isneginf>(library);
  adapted<o::relu, plugrad::relu>(library);
  adapted<o::leaky_relu_out, plugrad::leaky_relu>(library);
  adapted<o::softplus_out, plugrad::softplus>(library);
  kernel<o::hardtanh, hardtanh>(library);
  kernel<o::hardtanh_out, hardtanh_out>(library);
  kernel<o::log_sigmoid_backward, log_sigmoid_backward>(library);
  adapted<o::hardswish, plugrad::hardswish>(library);
  adapted<o::hardswish_out, plugrad::hardswish>(library);
  adapted<o::hardsigmoid_out, plugrad::hardsigmoid>(library);
  kernel<o::hardshrink_out, hardshrink_out>(library);
  adapted<o::softshrink_out, plugrad::softshrink>(library);
  adapted<o::frac_out, plugrad::frac>(library);
}

// Functions with floating results.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  using namespace plugrad_torch;
  kernel<o::sqrt_out, floating_out<plugrad::sqrt>>(library);
  kernel<o::exp_out, floating_out<plugrad::exp>>(library);
  kernel<o::log_out, floating_out<plugrad::log>>(library);
  kernel<o::tanh_out, floating_out<plugrad::tanh>>(library);
  kernel<o::sigmoid_out, floating_out<plugrad::sigmoid>>(library);
  kernel<o::erf_out, floating_out<plugrad::erf>>(library);
  kernel<o::erfc_out, floating_out<plugrad::erfc>>(library);
  kernel<o::erfinv_out, floating_out<plugrad::erfinv>>(library);
  kernel<o::sin_out, floating_out<plugrad::sin>>(library);
  kernel<o::cos_out, floating_out<plugrad::cos>>(library);
  kernel<o::tan_out, floating_out<plugrad::tan>>(library);
  kernel<o::asin_out, floating_out<plugrad::asin>>(library);
  kernel<o::acos_out, floating_out<plugrad::acos>>(library);
  kernel<o::atan_out, floating_out<plugrad::atan>>(library);
  kernel<o::sinh_out, floating_out<plugrad::sinh>>(library);
  kernel<o::cosh_out, floating_out<plugrad::cosh>>(library);
  kernel<o::asinh_out, floating_out<plugrad::asinh>>(library);
  kernel<o::acosh_out, floating_out<plugrad::acosh>>(library);
  kernel<o::atanh_out, floating_out<plugrad::atanh>>(library);
  kernel<o::rsqrt_out, floating_out<plugrad::rsqrt>>(library);
  kernel<o::reciprocal_out, floating_out<plugrad::reciprocal>>(library);
  kernel<o::exp2_out, floating_out<plugrad::exp2>>(library);
  kernel<o::log2_out, floating_out<plugrad::log2>>(library);
  kernel<o::log10_out, floating_out<plugrad::log10>>(library);
  kernel<o::expm1_out, floating_out<plugrad::expm1>>(library);
  kernel<o::log1p_out, floating_out<plugrad::log1p>>(library);
}

// Special functions.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  using namespace plugrad_torch;
  kernel<o::lgamma_out, floating_out<plugrad::lgamma>>(library);
  kernel<o::digamma_out, floating_out<plugrad::digamma>>(library);
  kernel<o::i0_out, floating_out<plugrad::i0>>(library);
  kernel<o::special_i0e_out, floating_out<plugrad::i0e>>(library);
  kernel<o::special_i1_out, floating_out<plugrad::i1>>(library);
  kernel<o::special_i1e_out, floating_out<plugrad::i1e>>(library);
  kernel<o::special_entr_out, floating_out<plugrad::entr>>(library);
  kernel<o::special_erfcx_out, floating_out<plugrad::erfcx>>(library);
  kernel<o::special_ndtri_out, floating_out<plugrad::ndtri>>(library);
  kernel<o::special_log_ndtr_out, floating_out<plugrad::log_ndtr>>(library);
  kernel<o::sinc_out, floating_out<plugrad::sinc>>(library);
  kernel<o::polygamma_out, polygamma_out>(library);
}

// Rounding, limits, and functions of several operands.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  using namespace plugrad_torch;
  kernel<o::isnan, isnan>(library);
  kernel<o::floor_out, rounded_out<plugrad::floor>>(library);
  kernel<o::ceil_out, rounded_out<plugrad::ceil>>(library);
  kernel<o::trunc_out, rounded_out<plugrad::trunc>>(library);
  kernel<o::round_out, rounded_out<plugrad::round>>(library);
  kernel<o::round_decimals_out, round_decimals_out>(library);
  kernel<o::relu_, relu_>(library);
  kernel<o::gelu_out, gelu_out>(library);
  kernel<o::clamp_out, clamp_out>(library);
  kernel<o::clamp_Tensor_out, clamp_tensors_out>(library);
  kernel<o::clamp_min_out, clamp_min_out>(library);
  kernel<o::clamp_max_out, clamp_max_out>(library);
  kernel<o::clamp_min_Tensor_out, clamp_min_tensor_out>(library);
  kernel<o::clamp_max_Tensor_out, clamp_max_tensor_out>(library);
  kernel<o::addcmul_out, addcmul_out>(library);
  kernel<o::addcdiv_out, addcdiv_out>(library);
  kernel<o::lerp_Scalar_out, lerp_scalar_out>(library);
  kernel<o::lerp_Tensor_out, lerp_tensor_out>(library);
  kernel<o::elu_out, elu_out>(library);
  kernel<o::nan_to_num_out, nan_to_num_out>(library);
  kernel<o::log_sigmoid_forward_output, log_sigmoid_out>(library);
  kernel<o::masked_fill_Scalar, masked_fill>(library);
  kernel<o::masked_fill__Scalar, masked_fill_>(library);
  kernel<o::threshold_out, threshold_out>(library);
}

// Gradients.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  using namespace plugrad_torch;
  kernel<o::threshold_backward_grad_input, threshold_backward_out>(library);
  kernel<o::tanh_backward_grad_input, activation_backward_out<plugrad::tanh_backward>>(library);
  kernel<o::sigmoid_backward_grad_input, activation_backward_out<plugrad::sigmoid_backward>>(library);
  kernel<o::silu_backward_grad_input, activation_backward_out<plugrad::silu_backward>>(library);
  kernel<o::gelu_backward_grad_input, gelu_backward_out>(library);
  kernel<o::log_sigmoid_backward_grad_input, log_sigmoid_backward_out>(library);
  kernel<o::softplus_backward_grad_input, softplus_backward_out>(library);
  kernel<o::leaky_relu_backward_grad_input, leaky_relu_backward_out>(library);
  kernel<o::hardtanh_backward_grad_input, hardtanh_backward_out>(library);
  kernel<o::elu_backward_grad_input, elu_backward_out>(library);
  kernel<o::hardswish_backward, hardswish_backward>(library);
  kernel<o::hardsigmoid_backward_grad_input, hardsigmoid_backward_out>(library);
  kernel<o::hardshrink_backward_grad_input, shrink_backward_out>(library);
  kernel<o::softshrink_backward_grad_input, shrink_backward_out>(library);
}
