// Elementwise ops of two operands, with PyTorch's promotion of dtypes.
#include <ATen/ExpandUtils.h>
#include <ATen/Operators.h>
#include <ATen/ScalarOps.h>
#include <ATen/native/BinaryOps.h>
#include <bridge/adapt.hpp>
#include <bridge/promotion.hpp>
#include <plugrad/ops/arithmetic.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/integers.hpp>
#include <plugrad/ops/logic.hpp>
#include <plugrad/ops/raw.hpp>
#include <plugrad/ops/special.hpp>
#include <plugrad/ops/trigonometry.hpp>

namespace plugrad_torch {
namespace o = at::_ops;
namespace {
using Add = Symmetric<plugrad::add, plugrad::add>;
using Mul = Symmetric<plugrad::mul, plugrad::mul>;
using Maximum = Symmetric<plugrad::maximum, plugrad::maximum>;
using Minimum = Symmetric<plugrad::minimum, plugrad::minimum>;
using BitwiseAnd = Symmetric<plugrad::bitwise_and, plugrad::bitwise_and>;
using BitwiseOr = Symmetric<plugrad::bitwise_or, plugrad::bitwise_or>;
using BitwiseXor = Symmetric<plugrad::bitwise_xor, plugrad::bitwise_xor>;
using Eq = Symmetric<plugrad::eq, plugrad::eq, plugrad::eq>;
using Ne = Symmetric<plugrad::ne, plugrad::ne, plugrad::ne>;
using Lt = Symmetric<plugrad::lt, plugrad::lt, plugrad::gt>;
using Le = Symmetric<plugrad::le, plugrad::le, plugrad::ge>;
using Gt = Symmetric<plugrad::gt, plugrad::gt, plugrad::lt>;
using Ge = Symmetric<plugrad::ge, plugrad::ge, plugrad::le>;
using Sub = Function<plugrad::sub, plugrad::sub, plugrad::sub>;
using Div = Function<plugrad::div, plugrad::div, plugrad::div>;
using Pow = Function<plugrad::pow, plugrad::pow, plugrad::pow>;
using Remainder = Function<plugrad::remainder, plugrad::remainder, plugrad::remainder>;
using FloorDivide = Function<plugrad::floor_divide, plugrad::floor_divide, plugrad::floor_divide>;
using Xlogy = Function<plugrad::xlogy, plugrad::xlogy, plugrad::xlogy>;
using Xlog1py = Function<plugrad::xlog1py, plugrad::xlog1py, plugrad::xlog1py>;
using LeftShift = Function<plugrad::bitwise_left_shift, plugrad::bitwise_left_shift, plugrad::bitwise_left_shift>;
using RightShift = Function<plugrad::bitwise_right_shift, plugrad::bitwise_right_shift, plugrad::bitwise_right_shift>;
using Fmod = Function<plugrad::fmod, plugrad::fmod>;
using Copysign = Function<plugrad::copysign, plugrad::copysign>;
using LogicalAnd = Function<plugrad::logical_and>;
using LogicalOr = Function<plugrad::logical_or>;
using LogicalXor = Function<plugrad::logical_xor>;

// Writes opcode(a, b) to out in one kernel, if the operands have out's dtype.
bool runs_into(uint32_t opcode, T& out, const T& a, const T& b) {
  const ScalarType type = out.scalar_type();
  if (type == at::kBool || !is_ours(a) || a.scalar_type() != type || at::result_type(a, b) != type) return false;
  if (!is_number(b) && b.scalar_type() != type) return false;
  // A result of its own memory needs no copy: it becomes the memory of `out`.
  const Place place = place_of(out.storage().data_ptr());
  if (!place.block || !place.block->has_memory() || !out.numel()) return false;
  if (!out.is_same(a) && out.sizes() != at::infer_size(a.sizes(), b.sizes())) return false;
  if (is_number(b)) return plugrad::run_into(opcode, over(out), {over(a), number_of(b.item())});
  return plugrad::run_into(opcode, over(out), {over(a), over(b)});
}

// Whole numbers and bools keep their common dtype: PyTorch's sum of bools is a bool.
P in_common_dtype(const P& y, const T& a, const T& b) {
  return plugrad::is_integer(y.dtype()) ? plugrad::cast(y, dtype_of(at::result_type(a, b))) : y;
}
template <class F> T of_tensors(const T& a, const T& b) { return result(in_common_dtype(promoted<F>(a, b), a, b)); }
template <class F> T& into(const T& a, const T& b, T& out) { return write(out, promoted<F>(a, b)); }
template <class F, uint32_t kOpcode> T& into_by(const T& a, const T& b, T& out) {
  return runs_into(kOpcode, out, a, b) ? out : into<F>(a, b, out);
}
template <class F> T of_scalar(const T& a, const Scalar& b) {
  return of_tensors<F>(a, at::native::wrapped_scalar_tensor(b));
}
template <class F> T& scalar_into(const T& a, const Scalar& b, T& out) {
  return into<F>(a, at::native::wrapped_scalar_tensor(b), out);
}
template <class F> T& first_scalar_into(const Scalar& a, const T& b, T& out) {
  return into<F>(at::native::wrapped_scalar_tensor(a), b, out);
}

struct Scaled {
  const Scalar& alpha;
  P operator()(const P& x, Number y) const { return Add()(x, times(y)); }
  P operator()(Number x, const P& y) const { return Add()(x, times(y)); }
  P times(const P& y) const { return plugrad::mul(y, number_of(alpha)); }
  Number times(Number y) const {
    return y.floating() || alpha.isFloatingPoint() ? Number(y.real() * alpha.toDouble())
                                                   : Number(y.integer() * alpha.toLong());
  }
  P operator()(const P& x, const P& y) const { return plugrad::add(x, y, number_of(alpha)); }
};
Scalar negated(const Scalar& value) { return value.isFloatingPoint() ? Scalar(-value.toDouble()) : Scalar(-value.toLong()); }
void require_alpha(const T& a, const T& b, const Scalar& alpha) { at::native::alpha_check(at::result_type(a, b), alpha); }

P sum_scaled(const T& a, const T& b, const Scalar& alpha) {
  require_alpha(a, b, alpha);
  return alpha.equal(1) ? promoted<Add>(a, b) : promoted(a, b, Scaled{alpha});
}
T add(const T& a, const T& b, const Scalar& alpha) { return result(in_common_dtype(sum_scaled(a, b, alpha), a, b)); }
T& add_out(const T& a, const T& b, const Scalar& alpha, T& out) {
  if (alpha.equal(1) && runs_into(PLUGRAD_OP_ADD, out, a, b)) return out;
  const bool in_place = out.is_same(a) && is_ours(b) && at::isFloatingType(out.scalar_type()) &&
                        b.scalar_type() == out.scalar_type() && out.sizes() == at::infer_size(a.sizes(), b.sizes());
  if (!in_place || !out.numel()) return write(out, sum_scaled(a, b, alpha));
  require_alpha(a, b, alpha);
  over(out).add_(over(b), number_of(alpha));
  return out;
}
P difference(const T& a, const T& b, const Scalar& alpha) {
  at::native::sub_check(a, b);
  require_alpha(a, b, alpha);
  return alpha.equal(1) ? promoted<Sub>(a, b) : promoted(a, b, Scaled{negated(alpha)});
}
T sub(const T& a, const T& b, const Scalar& alpha) { return result(in_common_dtype(difference(a, b, alpha), a, b)); }
T& sub_out(const T& a, const T& b, const Scalar& alpha, T& out) {
  if (alpha.equal(1) && a.scalar_type() != at::kBool && runs_into(PLUGRAD_OP_SUB, out, a, b)) return out;
  return write(out, difference(a, b, alpha));
}

T& div_mode_out(const T& a, const T& b, std::optional<std::string_view> mode, T& out) {
  if (!mode) return into_by<Div, PLUGRAD_OP_DIV>(a, b, out);
  const auto how = *mode == "floor" ? plugrad::RoundingMode::floor : plugrad::RoundingMode::trunc;
  return write(out, promoted(a, b, [&](const auto& x, const auto& y) {
                 if constexpr (std::is_same_v<std::decay_t<decltype(x)>, Number>)
                   return plugrad::div(as_tensor(x, y), y, how);
                 else return plugrad::div(x, y, how);
               }));
}

// The bitwise functions of bools are the logical ones.
template <class F, class OfBools> T& bitwise_into(const T& a, const T& b, T& out) {
  return at::result_type(a, b) == at::kBool ? into<OfBools>(a, b, out) : into<F>(a, b, out);
}
T& bitwise_not_out(const T& x, T& out) {
  return write(out, x.scalar_type() == at::kBool ? plugrad::logical_not(over(x)) : plugrad::bitwise_not(over(x)));
}

P chosen(const T& condition, const T& a, const T& b) {
  const P c = over(condition, at::kBool);
  if (is_number(a) && is_number(b)) {
    const DType dtype = dtype_of(at::result_type(a, b));
    return plugrad::where(c, plugrad::full(Shape{}, number_of(a.item()), dtype, c.device()), number_of(b.item()));
  }
  return promoted(a, b, [&](const auto& x, const auto& y) { return plugrad::where(c, x, y); });
}
T where(const T& condition, const T& a, const T& b) { return result(chosen(condition, a, b)); }
T& where_out(const T& condition, const T& a, const T& b, T& out) { return write(out, chosen(condition, a, b)); }

// A whole number to a negative power is a fraction, which PyTorch rounds towards zero and plugrad refuses.
void require_fractions(ScalarType dtype) {
  if (!at::isFloatingType(dtype)) throw Unsupported{"powers of whole numbers"};
}
T& pow_out(const T& a, const T& exponent, T& out) {
  require_fractions(out.scalar_type());
  return into<Pow>(a, exponent, out);
}
T& pow_scalar_out(const T& a, const Scalar& exponent, T& out) {
  return write(out, plugrad::pow(over(a, at::result_type(a, exponent)), number_of(exponent)));
}
T& pow_of_scalar_out(const Scalar& a, const T& exponent, T& out) {
  require_fractions(out.scalar_type());
  return write(out, plugrad::pow(number_of(a), over(exponent, at::result_type(a, exponent))));
}

template <class F, class TensorOut, class ScalarOut, class Tensor, class OfScalar> void comparison(torch::Library& library) {
  kernel<TensorOut, into<F>>(library);
  kernel<ScalarOut, scalar_into<F>>(library);
  kernel<Tensor, of_tensors<F>>(library);
  kernel<OfScalar, of_scalar<F>>(library);
}
}  // namespace
}  // namespace plugrad_torch

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  using namespace plugrad_torch;
  kernel<o::add_Tensor, add>(library);
  kernel<o::add_out, add_out>(library);
  kernel<o::sub_Tensor, sub>(library);
  kernel<o::sub_out, sub_out>(library);
  kernel<o::mul_Tensor, of_tensors<Mul>>(library);
  kernel<o::mul_out, into_by<Mul, PLUGRAD_OP_MUL>>(library);
  kernel<o::div_Tensor, of_tensors<Div>>(library);
  kernel<o::div_out, into_by<Div, PLUGRAD_OP_DIV>>(library);
  kernel<o::div_out_mode, div_mode_out>(library);
  kernel<o::maximum_out, into_by<Maximum, PLUGRAD_OP_MAXIMUM>>(library);
  kernel<o::minimum_out, into_by<Minimum, PLUGRAD_OP_MINIMUM>>(library);
  kernel<o::pow_Tensor_Tensor_out, pow_out>(library);
  kernel<o::pow_Tensor_Scalar_out, pow_scalar_out>(library);
  kernel<o::pow_Scalar_out, pow_of_scalar_out>(library);
  kernel<o::remainder_Tensor_out, into<Remainder>>(library);
  kernel<o::fmod_Tensor_out, into<Fmod>>(library);
  kernel<o::fmax_out, into<Function<plugrad::fmax>>>(library);
  kernel<o::fmin_out, into<Function<plugrad::fmin>>>(library);
  kernel<o::atan2_out, into<Function<plugrad::atan2>>>(library);
  kernel<o::copysign_out, into<Copysign>>(library);
  kernel<o::hypot_out, into<Function<plugrad::hypot>>>(library);
  kernel<o::logaddexp_out, into<Function<plugrad::logaddexp>>>(library);
  kernel<o::logaddexp2_out, into<Function<plugrad::logaddexp2>>>(library);
  kernel<o::heaviside_out, into<Function<plugrad::heaviside>>>(library);
  kernel<o::xlogy_OutTensor, into<Xlogy>>(library);
  kernel<o::special_xlog1py_out, into<Xlog1py>>(library);
  kernel<o::floor_divide, of_tensors<FloorDivide>>(library);
  kernel<o::floor_divide_out, into<FloorDivide>>(library);
}

// Logic and comparisons.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  using namespace plugrad_torch;
  kernel<o::logical_and_out, into<LogicalAnd>>(library);
  kernel<o::logical_or_out, into<LogicalOr>>(library);
  kernel<o::logical_xor_out, into<LogicalXor>>(library);
  kernel<o::bitwise_and_Tensor_out, bitwise_into<BitwiseAnd, LogicalAnd>>(library);
  kernel<o::bitwise_or_Tensor_out, bitwise_into<BitwiseOr, LogicalOr>>(library);
  kernel<o::bitwise_xor_Tensor_out, bitwise_into<BitwiseXor, LogicalXor>>(library);
  kernel<o::bitwise_left_shift_Tensor_out, into<LeftShift>>(library);
  kernel<o::bitwise_right_shift_Tensor_out, into<RightShift>>(library);
  kernel<o::bitwise_not_out, bitwise_not_out>(library);
  comparison<Eq, o::eq_Tensor_out, o::eq_Scalar_out, o::eq_Tensor, o::eq_Scalar>(library);
  comparison<Ne, o::ne_Tensor_out, o::ne_Scalar_out, o::ne_Tensor, o::ne_Scalar>(library);
  comparison<Lt, o::lt_Tensor_out, o::lt_Scalar_out, o::lt_Tensor, o::lt_Scalar>(library);
  comparison<Le, o::le_Tensor_out, o::le_Scalar_out, o::le_Tensor, o::le_Scalar>(library);
  comparison<Gt, o::gt_Tensor_out, o::gt_Scalar_out, o::gt_Tensor, o::gt_Scalar>(library);
  comparison<Ge, o::ge_Tensor_out, o::ge_Scalar_out, o::ge_Tensor, o::ge_Scalar>(library);
  kernel<o::where_self, where>(library);
  kernel<o::where_self_out, where_out>(library);
}
