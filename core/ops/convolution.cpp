#include <plugrad/ops/convolution.hpp>

#include <core/ops/argument.hpp>
#include <core/ops/autocast_rules.hpp>
#include <core/ops/backward.hpp>
#include <core/ops/convolution_ops.hpp>
#include <core/ops/spatial.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/arrangement.hpp>
#include <plugrad/ops/gradients.hpp>
#include <plugrad/ops/views.hpp>

namespace plugrad {
namespace {
using Settings = ConvolutionSettings;

Settings settings(const char* name, int axes, const Shape& stride, const Shape& padding, const Shape& dilation,
                  int64_t groups) {
  return {per_axis(name, "stride", stride, axes, 1), per_axis(name, "padding", padding, axes, 0),
          per_axis(name, "dilation", dilation, axes, 1), groups};
}

void require_shapes(const char* name, const Shape& x, const Shape& weight, int axes, int64_t groups, bool transposed) {
  const bool ranks = (x.rank() == axes + 2 || x.rank() == axes + 1) && weight.rank() == axes + 2;
  const auto fits = [&] {
    const int64_t channels = x[x.size() - 1 - static_cast<size_t>(axes)], first = weight[0];
    const int64_t wanted = transposed ? first : int64_t{Extent(groups) * weight[1]};
    return first % groups == 0 && channels == wanted && weight.count();
  };
  if (!ranks || groups < 1 || !fits())
    refuse(name, "x is " + x.text() + " and weight " + weight.text() + ", groups " + std::to_string(groups) +
                     ": expected (n, c, ..) and " + (transposed ? "(c, o / groups, ..)" : "(o, c / groups, ..)"));
}
// Checks the operands' dtypes and ranks, and x's number of channels against the weight's extents.
void require_fitting(const char* name, const Tensor& x, const Tensor& weight, int axes, int64_t groups, bool transposed) {
  require_inexact(name, x);
  require_inexact(name, weight);
  require_shapes(name, x.shape(), weight.shape(), axes, groups, transposed);
}

void require_bias(const char* name, const Tensor& bias, int64_t channels) {
  if (bias.defined() && bias.shape() != Shape{channels})
    refuse(name, "bias is " + bias.shape().text() + ": expected (" + std::to_string(channels) + ",)");
}

// Checks that windows fit, and returns the shape of the result.
Shape convolved_shape(const char* name, const Shape& x, const Shape& weight, const Settings& how) {
  Shape padded = x, shape{x[0], weight[0]};
  for (size_t i = 0; i < how.stride.size(); ++i) padded[i + 2] = 2 * Extent(how.padding[i]) + padded[i + 2];
  for (int i = 0; i < how.stride.rank(); ++i) {
    const Windows along = how.windows(weight, i);
    require_window(name, padded, along);
    shape.push_back(along.count(padded[static_cast<size_t>(i) + 2]));
  }
  return shape;
}

Tensor convolution(const char* name, const Tensor& x, const Tensor& weight, const Tensor& bias, int axes,
                   const Settings& how) {
  if (autocasting()) [[unlikely]] {
    const auto computed = [&](const Tensor& in, const Tensor& by, const Tensor& plus) {
      return convolution(name, in, by, plus, axes, how);
    };
    return in_low_precision(computed, x, weight, bias);
  }
  require_fitting(name, x, weight, axes, how.groups, false);
  require_bias(name, bias, weight.size(0));
  const bool batched = x.rank() == axes + 2;
  const Tensor images = batched ? x : unsqueeze(x, 0);
  const Shape shape = convolved_shape(name, images.shape(), weight.shape(), how);
  const Tensor out = convolve(images, weight, bias, shape, how.used(weight.shape(), images.shape()));
  return batched ? out : squeeze(out, {0});
}

// The settings of a convolution of x_shape by weight_shape. Throws Error (invalid) unless grad has the result's shape.
Settings settings_of_backward(const char* name, const Tensor& grad, const Tensor& other, const Shape& x_shape,
                              const Shape& weight_shape, Settings how) {
  require_gradient(name, grad, other);
  const int axes = grad.rank() - 2;
  if (axes < 1 || axes > 3)
    refuse(name, "grad is " + grad.shape().text() + ": expected (n, o, ..) with 1 to 3 spatial axes");
  how = settings(name, axes, how.stride, how.padding, how.dilation, how.groups);
  if (x_shape.rank() != axes + 2) refuse(name, "x is " + x_shape.text() + ": expected the rank of " + grad.shape().text());
  require_shapes(name, x_shape, weight_shape, axes, how.groups, false);
  const Shape expected = convolved_shape(name, x_shape, weight_shape, how);
  if (grad.shape() != expected) refuse(name, "grad is " + grad.shape().text() + ": expected " + expected.text());
  return how.used(weight_shape, x_shape);
}
}  // namespace

Tensor convolution_input_backward(const Tensor& grad, const Tensor& weight, const Shape& x_shape, const Shape& stride,
                                  const Shape& padding, const Shape& dilation, int64_t groups) {
  constexpr const char* kName = "convolution_input_backward";
  require_defined(weight, kName);
  const WithoutGraph plainly;
  const Settings how =
      settings_of_backward(kName, grad, weight, x_shape, weight.shape(), {stride, padding, dilation, groups});
  return convolution_input_gradient(grad, weight, x_shape, how);
}

Tensor convolution_weight_backward(const Tensor& grad, const Tensor& x, const Shape& weight_shape, const Shape& stride,
                                   const Shape& padding, const Shape& dilation, int64_t groups) {
  constexpr const char* kName = "convolution_weight_backward";
  require_defined(x, kName);
  const WithoutGraph plainly;
  const Settings how = settings_of_backward(kName, grad, x, x.shape(), weight_shape, {stride, padding, dilation, groups});
  return convolution_weight_gradient(grad, x, weight_shape, how);
}

Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Shape& stride, const Shape& padding,
              const Shape& dilation, int64_t groups) {
  return convolution("conv1d", x, weight, bias, 1, settings("conv1d", 1, stride, padding, dilation, groups));
}
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Shape& stride, const Shape& padding,
              const Shape& dilation, int64_t groups) {
  return convolution("conv2d", x, weight, bias, 2, settings("conv2d", 2, stride, padding, dilation, groups));
}
Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Shape& stride, const Shape& padding,
              const Shape& dilation, int64_t groups) {
  return convolution("conv3d", x, weight, bias, 3, settings("conv3d", 3, stride, padding, dilation, groups));
}

// --- Padding by name.

namespace {
// x padded so that the result keeps its extents: of an odd number, the additional element is behind x.
Tensor padded_to_keep(const char* name, const Tensor& x, const Tensor& weight, int axes, const Settings& how) {
  require_fitting(name, x, weight, axes, how.groups, false);
  std::vector<int64_t> pads;
  for (size_t i = how.stride.size(); i-- > 0;) {
    if (how.stride[i] != 1)
      refuse(name, "padding is 'same' and stride " + how.stride.text() + ": 'same' needs stride 1, so give numbers instead");
    const int64_t total = Extent(weight.size(static_cast<int>(i) + 2) - 1) * how.dilation[i];
    pads.insert(pads.end(), {total / 2, total - total / 2});
  }
  return pad(x, pads);
}

Tensor convolution(const char* name, const Tensor& x, const Tensor& weight, const Tensor& bias, int axes,
                   ConvolutionPadding padding, const Settings& how) {
  const bool keeps = padding == ConvolutionPadding::same;
  return convolution(name, keeps ? padded_to_keep(name, x, weight, axes, how) : x, weight, bias, axes, how);
}
}  // namespace

Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Shape& stride, ConvolutionPadding padding,
              const Shape& dilation, int64_t groups) {
  return convolution("conv1d", x, weight, bias, 1, padding, settings("conv1d", 1, stride, {0}, dilation, groups));
}
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Shape& stride, ConvolutionPadding padding,
              const Shape& dilation, int64_t groups) {
  return convolution("conv2d", x, weight, bias, 2, padding, settings("conv2d", 2, stride, {0}, dilation, groups));
}
Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Shape& stride, ConvolutionPadding padding,
              const Shape& dilation, int64_t groups) {
  return convolution("conv3d", x, weight, bias, 3, padding, settings("conv3d", 3, stride, {0}, dilation, groups));
}

// --- The transposed convolution: each element of x adds a window of the weight's products.

namespace {
Shape transposed_shape(const char* name, const Tensor& x, const Tensor& weight, const Settings& how,
                       const Shape& output_padding) {
  Shape shape{x.size(0), Extent(how.groups) * weight.size(1)};
  for (int i = 0; i < how.stride.rank(); ++i) {
    const size_t at = static_cast<size_t>(i);
    const Windows along = how.windows(weight.shape(), i);
    const Extent extent = x.size(i + 2) ? (x.size(i + 2) - 1) * along.step + along.span() : Extent(0);
    shape.push_back(extent + output_padding[at] - 2 * Extent(how.padding[at]));
    if (shape[at + 2] < 1)
      refuse(name,
             "x is " + x.shape().text() + " and padding " + how.padding.text() + ": they leave no elements, so pad less");
  }
  return shape;
}

Tensor transposed_convolution(const char* name, const Tensor& x, const Tensor& weight, const Tensor& bias,
                              const Shape& output_padding, const Settings& how) {
  if (autocasting()) [[unlikely]]
    return in_low_precision(transposed_convolution, name, x, weight, bias, output_padding, how);
  const int axes = how.stride.rank();
  const Shape extra = per_axis(name, "output_padding", output_padding, axes, 0);
  require_fitting(name, x, weight, axes, how.groups, true);
  require_bias(name, bias, weight.size(1) * how.groups);
  for (size_t i = 0; i < extra.size(); ++i)
    if (extra[i] >= how.stride[i] && extra[i] >= how.dilation[i])
      refuse(name, "output_padding is " + extra.text() + ": it must be below stride or dilation");
  const bool batched = x.rank() == axes + 2;
  const Tensor images = batched ? x : unsqueeze(x, 0);
  const Shape shape = transposed_shape(name, images, weight, how, extra);
  const Settings used = how.used(weight.shape(), shape);
  const Tensor out = with_bias(convolution_input_gradient(images, weight, shape, used), bias);
  return batched ? out : squeeze(out, {0});
}
}  // namespace

Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Shape& stride, const Shape& padding,
                        const Shape& output_padding, int64_t groups, const Shape& dilation) {
  return transposed_convolution("conv_transpose1d", x, weight, bias, output_padding,
                                settings("conv_transpose1d", 1, stride, padding, dilation, groups));
}
Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Shape& stride, const Shape& padding,
                        const Shape& output_padding, int64_t groups, const Shape& dilation) {
  return transposed_convolution("conv_transpose2d", x, weight, bias, output_padding,
                                settings("conv_transpose2d", 2, stride, padding, dilation, groups));
}
Tensor conv_transpose3d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Shape& stride, const Shape& padding,
                        const Shape& output_padding, int64_t groups, const Shape& dilation) {
  return transposed_convolution("conv_transpose3d", x, weight, bias, output_padding,
                                settings("conv_transpose3d", 3, stride, padding, dilation, groups));
}

}  // namespace plugrad
