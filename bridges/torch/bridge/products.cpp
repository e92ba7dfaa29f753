// Products of matrices, and convolutions.
#include <ATen/Operators.h>
#include <bridge/adapt.hpp>
#include <plugrad/ops/contractions.hpp>
#include <plugrad/ops/convolution.hpp>
#include <plugrad/ops/gradients.hpp>
#include <plugrad/ops/layers.hpp>
#include <plugrad/ops/linalg.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/raw.hpp>
#include <plugrad/ops/reduce.hpp>

namespace plugrad_torch {
namespace o = at::_ops;
namespace {
void require_same_dtype(const T& a, const T& b) {
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), "expected m1 and m2 to have the same dtype, but got: ", a.scalar_type(),
              " != ", b.scalar_type());
}
// Whole numbers have no product of a number beta or alpha with a fraction.
P product(const T& a, const T& b) {
  require_same_dtype(a, b);
  if (a.scalar_type() == at::kBool) throw Unsupported{"bool"};
  return plugrad::matmul(over(a), over(b));
}
T mm(const T& a, const T& b) { return result(product(a, b)); }
T& mm_out(const T& a, const T& b, T& out) { return write(out, product(a, b)); }

using Addition = P (*)(const P&, const P&, const P&, Number, Number);
template <Addition kFunction> P added(const T& x, const T& a, const T& b, const Scalar& beta, const Scalar& alpha) {
  require_same_dtype(a, b);
  if (!at::isFloatingType(a.scalar_type())) throw Unsupported{"whole numbers"};
  return kFunction(over(x, a.scalar_type()), over(a), over(b), number_of(beta), number_of(alpha));
}
template <Addition kFunction> T add_product(const T& x, const T& a, const T& b, const Scalar& beta, const Scalar& alpha) {
  return result(added<kFunction>(x, a, b, beta, alpha));
}
template <Addition kFunction>
T& add_product_out(const T& x, const T& a, const T& b, const Scalar& beta, const Scalar& alpha, T& out) {
  return write(out, added<kFunction>(x, a, b, beta, alpha));
}
T dot(const T& a, const T& b) {
  require_same_dtype(a, b);
  return result(plugrad::dot(over(a), over(b)));
}

struct Convolution {
  Shape stride, padding, dilation;
  int64_t groups;
};
P forward(const P& x, const P& weight, const P& bias, const Convolution& how) {
  switch (x.rank() - 2) {
    case 1: return plugrad::conv1d(x, weight, bias, how.stride, how.padding, how.dilation, how.groups);
    case 2: return plugrad::conv2d(x, weight, bias, how.stride, how.padding, how.dilation, how.groups);
    case 3: return plugrad::conv3d(x, weight, bias, how.stride, how.padding, how.dilation, how.groups);
    default: throw Unsupported{"this number of spatial axes"};
  }
}
P transposed_forward(const P& x, const P& weight, const P& bias, const Convolution& how, const Shape& output_padding) {
  switch (x.rank() - 2) {
    case 1:
      return plugrad::conv_transpose1d(x, weight, bias, how.stride, how.padding, output_padding, how.groups, how.dilation);
    case 2:
      return plugrad::conv_transpose2d(x, weight, bias, how.stride, how.padding, output_padding, how.groups, how.dilation);
    case 3:
      return plugrad::conv_transpose3d(x, weight, bias, how.stride, how.padding, output_padding, how.groups, how.dilation);
    default: throw Unsupported{"this number of spatial axes"};
  }
}
T convolution(const T& x, const T& weight, const OptT& bias, IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
              bool transposed, IntArrayRef output_padding, int64_t groups) {
  const Convolution how{shape_of(stride), shape_of(padding), shape_of(dilation), groups};
  const P input = floating_over(x);
  return result(transposed ? transposed_forward(input, over(weight), over(bias), how, shape_of(output_padding))
                           : forward(input, over(weight), over(bias), how));
}

Shape all_but_channels(const P& x) {
  Shape axes{0};
  for (int i = 2; i < x.rank(); ++i) axes.push_back(i);
  return axes;
}
// The gradient of a transposed convolution is a convolution, and the other way round.
std::tuple<T, T, T> convolution_backward(const T& grad, const T& x, const T& weight, IntArrayRef stride, IntArrayRef padding,
                                         IntArrayRef dilation, bool transposed, IntArrayRef, int64_t groups,
                                         std::array<bool, 3> wanted) {
  const P g = over(grad), input = floating_over(x), w = over(weight);
  const Convolution how{shape_of(stride), shape_of(padding), shape_of(dilation), groups};
  T of_x, of_weight, of_bias;
  if (wanted[0])
    of_x = result(transposed ? forward(g, w, {}, how)
                             : plugrad::convolution_input_backward(g, w, input.shape(), how.stride, how.padding,
                                                                   how.dilation, groups));
  if (wanted[1])
    of_weight = result(plugrad::convolution_weight_backward(transposed ? input : g, transposed ? g : input, w.shape(),
                                                            how.stride, how.padding, how.dilation, groups));
  if (wanted[2]) of_bias = result(plugrad::sum(g, all_but_channels(g)));
  return {of_x, of_weight, of_bias};
}

T& triangular_solve_out(const T& a, const T& b, bool upper, bool left, bool unitriangular, T& out) {
  return write(out, plugrad::linalg::solve_triangular(over(a), over(b), upper, left, unitriangular));
}
}  // namespace
}  // namespace plugrad_torch

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  using namespace plugrad_torch;
  kernel<o::mm, mm>(library);
  kernel<o::mm_out, mm_out>(library);
  kernel<o::bmm, mm>(library);
  kernel<o::bmm_out, mm_out>(library);
  kernel<o::addmm, add_product<plugrad::addmm>>(library);
  kernel<o::addmm_out, add_product_out<plugrad::addmm>>(library);
  kernel<o::baddbmm_out, add_product_out<plugrad::baddbmm>>(library);
  kernel<o::addmv_out, add_product_out<plugrad::addmv>>(library);
  kernel<o::addr, add_product<plugrad::addr>>(library);
  kernel<o::addr_out, add_product_out<plugrad::addr>>(library);
  kernel<o::addbmm, add_product<plugrad::addbmm>>(library);
  kernel<o::addbmm_out, add_product_out<plugrad::addbmm>>(library);
  kernel<o::dot, dot>(library);
  kernel<o::vdot, dot>(library);
  kernel<o::convolution_overrideable, convolution>(library);
  kernel<o::convolution_backward_overrideable, convolution_backward>(library);
  kernel<o::linalg_solve_triangular_out, triangular_solve_out>(library);
}
