// Resized images, samples at positions, windows as columns.
#include <ATen/Operators.h>
#include <bridge/adapt.hpp>
#include <bridge/gradient.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/images.hpp>
#include <plugrad/ops/resampling.hpp>
#include <plugrad/ops/scatter.hpp>

#include <array>
#include <cmath>

namespace plugrad_torch {
namespace o = at::_ops;
namespace {
using plugrad::Resampling;
using Scale = std::optional<double>;

struct Resizing {
  Resampling mode;
  std::optional<bool> align_corners;
};
// PyTorch passes the caller's scale factors, if any, beside the size that follows from them: positions scale by them.
P resized(const P& x, IntArrayRef size, const Resizing& how, std::initializer_list<Scale> scales) {
  std::vector<double> factors;
  int axis = 2;
  for (const Scale& each : scales) {
    if (each && *each > 0 && std::floor(static_cast<double>(x.size(axis)) * *each) == static_cast<double>(size[axis - 2u]))
      factors.push_back(*each);
    ++axis;
  }
  if (factors.size() == scales.size()) return plugrad::interpolate(x, {}, factors, how.mode, how.align_corners, false);
  return plugrad::interpolate(x, shape_of(size), {}, how.mode, how.align_corners);
}
// The gradient at a tensor of these sizes; the function is linear, so its values do not matter.
P resized_gradient(const T& grad, IntArrayRef sizes, const Resizing& how, std::initializer_list<Scale> scales) {
  const IntArrayRef size = grad.sizes().slice(2);
  const P g = over(grad), x = plugrad::zeros(shape_of(sizes), g.dtype(), g.device());
  return gradient_of(x, g, [&](const P& y) { return resized(y, size, how, scales); });
}

template <Resampling kMode> T& nearest1d_out(const T& x, IntArrayRef size, Scale w, T& out) {
  return write(out, resized(over(x), size, {kMode, {}}, {w}));
}
template <Resampling kMode> T& nearest2d_out(const T& x, IntArrayRef size, Scale h, Scale w, T& out) {
  return write(out, resized(over(x), size, {kMode, {}}, {h, w}));
}
template <Resampling kMode> T& nearest3d_out(const T& x, IntArrayRef size, Scale d, Scale h, Scale w, T& out) {
  return write(out, resized(over(x), size, {kMode, {}}, {d, h, w}));
}
T& linear1d_out(const T& x, IntArrayRef size, bool align, Scale w, T& out) {
  return write(out, resized(over(x), size, {Resampling::linear, align}, {w}));
}
template <Resampling kMode> T& linear2d_out(const T& x, IntArrayRef size, bool align, Scale h, Scale w, T& out) {
  return write(out, resized(over(x), size, {kMode, align}, {h, w}));
}
T& linear3d_out(const T& x, IntArrayRef size, bool align, Scale d, Scale h, Scale w, T& out) {
  return write(out, resized(over(x), size, {Resampling::trilinear, align}, {d, h, w}));
}
template <Resampling kMode> T& nearest1d_backward_out(const T& grad, IntArrayRef, IntArrayRef sizes, Scale w, T& out) {
  return write(out, resized_gradient(grad, sizes, {kMode, {}}, {w}));
}
template <Resampling kMode>
T& nearest2d_backward_out(const T& grad, IntArrayRef, IntArrayRef sizes, Scale h, Scale w, T& out) {
  return write(out, resized_gradient(grad, sizes, {kMode, {}}, {h, w}));
}
template <Resampling kMode>
T& nearest3d_backward_out(const T& grad, IntArrayRef, IntArrayRef sizes, Scale d, Scale h, Scale w, T& out) {
  return write(out, resized_gradient(grad, sizes, {kMode, {}}, {d, h, w}));
}
T& linear1d_backward_out(const T& grad, IntArrayRef, IntArrayRef sizes, bool align, Scale w, T& out) {
  return write(out, resized_gradient(grad, sizes, {Resampling::linear, align}, {w}));
}
template <Resampling kMode>
T& linear2d_backward_out(const T& grad, IntArrayRef, IntArrayRef sizes, bool align, Scale h, Scale w, T& out) {
  return write(out, resized_gradient(grad, sizes, {kMode, align}, {h, w}));
}
T& linear3d_backward_out(const T& grad, IntArrayRef, IntArrayRef sizes, bool align, Scale d, Scale h, Scale w, T& out) {
  return write(out, resized_gradient(grad, sizes, {Resampling::trilinear, align}, {d, h, w}));
}

// PyTorch's numbers of modes and paddings.
struct Sampling {
  int64_t mode, padding;
  bool align_corners;
};
P sampled(const P& x, const P& grid, const Sampling& how) {
  constexpr Resampling kModes[] = {Resampling::bilinear, Resampling::nearest, Resampling::bicubic};
  constexpr plugrad::GridPadding kPaddings[] = {plugrad::GridPadding::zeros, plugrad::GridPadding::border,
                                                plugrad::GridPadding::reflection};
  return plugrad::grid_sample(x, grid, kModes[how.mode], kPaddings[how.padding], how.align_corners);
}
T grid_sampler(const T& x, const T& grid, int64_t mode, int64_t padding, bool align) {
  return result(sampled(over(x), over(grid), {mode, padding, align}));
}
std::tuple<T, T> grid_sampler_backward(const T& grad, const T& x, const T& grid, int64_t mode, int64_t padding, bool align,
                                       std::array<bool, 2> wanted) {
  const P g = over(grad), input = over(x), places = over(grid);
  const Sampling how{mode, padding, align};
  T of_x, of_grid;
  if (wanted[0]) of_x = result(gradient_of(input, g, [&](const P& y) { return sampled(y, places, how); }));
  if (wanted[1]) of_grid = result(gradient_of(places, g, [&](const P& y) { return sampled(input, y, how); }));
  return {of_x, of_grid};
}

T im2col(const T& x, IntArrayRef kernel_size, IntArrayRef dilation, IntArrayRef padding, IntArrayRef stride) {
  return result(plugrad::unfold(over(x), shape_of(kernel_size), shape_of(dilation), shape_of(padding), shape_of(stride)));
}
T col2im(const T& x, IntArrayRef size, IntArrayRef kernel_size, IntArrayRef dilation, IntArrayRef padding,
         IntArrayRef stride) {
  return result(plugrad::fold(over(x), shape_of(size), shape_of(kernel_size), shape_of(dilation), shape_of(padding),
                              shape_of(stride)));
}
// x's elements at their places in planes of zeros.
T unpooled(const T& x, const T& indices, IntArrayRef size) {
  std::vector<int64_t> sizes = x.sizes().vec();
  const int first = static_cast<int>(sizes.size() - size.size());
  std::copy(size.begin(), size.end(), sizes.begin() + first);
  const P zeros = plugrad::zeros(Shape(sizes), dtype_of(x.scalar_type()), device_of(x.device()));
  const auto flat = [&](const P& y) { return plugrad::flatten(y, first, -1); };
  return result(plugrad::reshape(plugrad::scatter(flat(zeros), first, flat(over(indices)), flat(over(x))), Shape(sizes)));
}
T max_unpool2d(const T& x, const T& indices, IntArrayRef size) { return unpooled(x, indices, size); }
T max_unpool3d(const T& x, const T& indices, IntArrayRef size, IntArrayRef, IntArrayRef) {
  return unpooled(x, indices, size);
}
}  // namespace
}  // namespace plugrad_torch

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  using namespace plugrad_torch;
  kernel<o::upsample_nearest1d_out, nearest1d_out<Resampling::nearest>>(library);
  kernel<o::upsample_nearest2d_out, nearest2d_out<Resampling::nearest>>(library);
  kernel<o::upsample_nearest3d_out, nearest3d_out<Resampling::nearest>>(library);
  kernel<o::_upsample_nearest_exact1d_out, nearest1d_out<Resampling::nearest_exact>>(library);
  kernel<o::_upsample_nearest_exact2d_out, nearest2d_out<Resampling::nearest_exact>>(library);
  kernel<o::_upsample_nearest_exact3d_out, nearest3d_out<Resampling::nearest_exact>>(library);
  kernel<o::upsample_linear1d_out, linear1d_out>(library);
  kernel<o::upsample_bilinear2d_out, linear2d_out<Resampling::bilinear>>(library);
  kernel<o::upsample_bicubic2d_out, linear2d_out<Resampling::bicubic>>(library);
  kernel<o::upsample_trilinear3d_out, linear3d_out>(library);
  kernel<o::upsample_nearest1d_backward_grad_input, nearest1d_backward_out<Resampling::nearest>>(library);
  kernel<o::upsample_nearest2d_backward_grad_input, nearest2d_backward_out<Resampling::nearest>>(library);
  kernel<o::upsample_nearest3d_backward_grad_input, nearest3d_backward_out<Resampling::nearest>>(library);
  kernel<o::_upsample_nearest_exact1d_backward_grad_input, nearest1d_backward_out<Resampling::nearest_exact>>(library);
  kernel<o::_upsample_nearest_exact2d_backward_grad_input, nearest2d_backward_out<Resampling::nearest_exact>>(library);
  kernel<o::_upsample_nearest_exact3d_backward_grad_input, nearest3d_backward_out<Resampling::nearest_exact>>(library);
  kernel<o::upsample_linear1d_backward_grad_input, linear1d_backward_out>(library);
  kernel<o::upsample_bilinear2d_backward_grad_input, linear2d_backward_out<Resampling::bilinear>>(library);
  kernel<o::upsample_bicubic2d_backward_grad_input, linear2d_backward_out<Resampling::bicubic>>(library);
  kernel<o::upsample_trilinear3d_backward_grad_input, linear3d_backward_out>(library);
  kernel<o::grid_sampler_2d, grid_sampler>(library);
  kernel<o::grid_sampler_3d, grid_sampler>(library);
  kernel<o::grid_sampler_2d_backward, grid_sampler_backward>(library);
  kernel<o::grid_sampler_3d_backward, grid_sampler_backward>(library);
  kernel<o::im2col, im2col>(library);
  kernel<o::col2im, col2im>(library);
  kernel<o::max_unpool2d, max_unpool2d>(library);
  kernel<o::max_unpool3d, max_unpool3d>(library);
}
