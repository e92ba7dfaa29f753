// Pooling and resampling.
#include <ATen/Operators.h>
#include <bridge/adapt.hpp>
#include <bridge/gradient.hpp>
#include <plugrad/ops/gradients.hpp>
#include <plugrad/ops/pooling.hpp>

namespace plugrad_torch {
namespace o = at::_ops;
namespace {
using MaxPool = plugrad::ValuesIndices (*)(const P&, const Shape&, const Shape&, const Shape&, const Shape&, bool);
template <MaxPool kFunction>
plugrad::ValuesIndices max_pooled(const T& x, IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding,
                                  IntArrayRef dilation, bool ceil_mode) {
  return kFunction(floating_over(x), shape_of(kernel_size), shape_of(stride), shape_of(padding), shape_of(dilation),
                   ceil_mode);
}
std::tuple<T&, T&> max_pool2d_out(const T& x, IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding,
                                  IntArrayRef dilation, bool ceil_mode, T& values, T& indices) {
  const auto made = max_pooled<plugrad::max_pool2d_with_indices>(x, kernel_size, stride, padding, dilation, ceil_mode);
  write(values, made.values), write(indices, made.indices);
  return {values, indices};
}
std::tuple<T, T> max_pool3d(const T& x, IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding,
                            IntArrayRef dilation, bool ceil_mode) {
  const auto made = max_pooled<plugrad::max_pool3d_with_indices>(x, kernel_size, stride, padding, dilation, ceil_mode);
  return {result(made.values), result(made.indices)};
}

// x and its gradient without an axis of batches are given one.
P max_pool_gradient(const T& grad, const T& x, const T& indices, int spatial) {
  const P g = over(grad), i = over(indices), input = over(x);
  if (x.dim() == spatial + 2) return plugrad::max_pool_backward(g, i, input.shape());
  const P made =
      plugrad::max_pool_backward(plugrad::unsqueeze(g, 0), plugrad::unsqueeze(i, 0), plugrad::unsqueeze(input, 0).shape());
  return plugrad::squeeze(made, {0});
}
T& max_pool2d_backward_out(const T& grad, const T& x, IntArrayRef, IntArrayRef, IntArrayRef, IntArrayRef, bool,
                           const T& indices, T& out) {
  return write(out, max_pool_gradient(grad, x, indices, 2));
}
T max_pool3d_backward(const T& grad, const T& x, IntArrayRef, IntArrayRef, IntArrayRef, IntArrayRef, bool,
                      const T& indices) {
  return result(max_pool_gradient(grad, x, indices, 3));
}

T& avg_pool2d_out(const T& x, IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding, bool ceil_mode,
                  bool count_include_pad, std::optional<int64_t> divisor, T& out) {
  return write(out, plugrad::avg_pool2d(floating_over(x), shape_of(kernel_size), shape_of(stride), shape_of(padding),
                                        ceil_mode, count_include_pad, divisor));
}
T& avg_pool3d_out(const T& x, IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding, bool ceil_mode,
                  bool count_include_pad, std::optional<int64_t> divisor, T& out) {
  return write(out, plugrad::avg_pool3d(floating_over(x), shape_of(kernel_size), shape_of(stride), shape_of(padding),
                                        ceil_mode, count_include_pad, divisor));
}
T& avg_pool2d_backward_out(const T& grad, const T& x, IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding,
                           bool ceil_mode, bool count_include_pad, std::optional<int64_t> divisor, T& out) {
  return write(out, gradient_of(over(x), over(grad), [&](const P& y) {
                 return plugrad::avg_pool2d(y, shape_of(kernel_size), shape_of(stride), shape_of(padding), ceil_mode,
                                            count_include_pad, divisor);
               }));
}
T& avg_pool3d_backward_out(const T& grad, const T& x, IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding,
                           bool ceil_mode, bool count_include_pad, std::optional<int64_t> divisor, T& out) {
  return write(out, gradient_of(over(x), over(grad), [&](const P& y) {
                 return plugrad::avg_pool3d(y, shape_of(kernel_size), shape_of(stride), shape_of(padding), ceil_mode,
                                            count_include_pad, divisor);
               }));
}

template <auto kFunction> T adaptive(const T& x, IntArrayRef size) {
  return result(kFunction(floating_over(x), shape_of(size)));
}
template <auto kFunction, int kSpatial> T adaptive_backward(const T& grad, const T& x) {
  const Shape size = shape_of(grad.sizes().slice(static_cast<size_t>(grad.dim() - kSpatial)));
  return result(gradient_of(over(x), over(grad), [&](const P& y) { return kFunction(y, size); }));
}
template <auto kFunction> std::tuple<T&, T&> adaptive_max_out(const T& x, IntArrayRef size, T& values, T& indices) {
  const plugrad::ValuesIndices made = kFunction(floating_over(x), shape_of(size));
  write(values, made.values), write(indices, made.indices);
  return {values, indices};
}
template <int kSpatial> T& adaptive_max_backward_out(const T& grad, const T& x, const T& indices, T& out) {
  return write(out, max_pool_gradient(grad, x, indices, kSpatial));
}
T& adaptive_avg_pool3d_out(const T& x, IntArrayRef size, T& out) {
  return write(out, plugrad::adaptive_avg_pool3d(floating_over(x), shape_of(size)));
}
}  // namespace
}  // namespace plugrad_torch

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  using namespace plugrad_torch;
  kernel<o::max_pool2d_with_indices_out, max_pool2d_out>(library);
  kernel<o::max_pool3d_with_indices, max_pool3d>(library);
  kernel<o::max_pool2d_with_indices_backward_grad_input, max_pool2d_backward_out>(library);
  kernel<o::max_pool3d_with_indices_backward, max_pool3d_backward>(library);
  kernel<o::avg_pool2d_out, avg_pool2d_out>(library);
  kernel<o::avg_pool3d_out, avg_pool3d_out>(library);
  kernel<o::avg_pool2d_backward_grad_input, avg_pool2d_backward_out>(library);
  kernel<o::avg_pool3d_backward_grad_input, avg_pool3d_backward_out>(library);
  kernel<o::_adaptive_avg_pool2d, adaptive<plugrad::adaptive_avg_pool2d>>(library);
  kernel<o::_adaptive_avg_pool3d, adaptive<plugrad::adaptive_avg_pool3d>>(library);
  kernel<o::adaptive_avg_pool3d_out, adaptive_avg_pool3d_out>(library);
  kernel<o::_adaptive_avg_pool2d_backward, adaptive_backward<plugrad::adaptive_avg_pool2d, 2>>(library);
  kernel<o::_adaptive_avg_pool3d_backward, adaptive_backward<plugrad::adaptive_avg_pool3d, 3>>(library);
  kernel<o::adaptive_max_pool2d_out, adaptive_max_out<plugrad::adaptive_max_pool2d_with_indices>>(library);
  kernel<o::adaptive_max_pool3d_out, adaptive_max_out<plugrad::adaptive_max_pool3d_with_indices>>(library);
  kernel<o::adaptive_max_pool2d_backward_grad_input, adaptive_max_backward_out<2>>(library);
  kernel<o::adaptive_max_pool3d_backward_grad_input, adaptive_max_backward_out<3>>(library);
}
