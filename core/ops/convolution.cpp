#include <plugrad/ops/convolution.hpp>

#include <core/ops/argument.hpp>
#include <core/ops/spatial.hpp>
#include <plugrad/ops/arrangement.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/views.hpp>

namespace plugrad {
namespace {
struct Settings {
  Shape stride, padding, dilation;
  int64_t groups;
};

Settings settings(const char* name, int axes, const Shape& stride, const Shape& padding, const Shape& dilation,
                  int64_t groups) {
  return {per_axis(name, "stride", stride, axes, 1), per_axis(name, "padding", padding, axes, 0),
          per_axis(name, "dilation", dilation, axes, 1), groups};
}

// Checks the operands. channels: how many of x the weight's extents mean.
void require_fitting(const char* name, const Tensor& x, const Tensor& weight, int axes, int64_t groups, bool transposed) {
  require_floating(name, x);
  require_floating(name, weight);
  const bool ranks = (x.rank() == axes + 2 || x.rank() == axes + 1) && weight.rank() == axes + 2;
  const auto fits = [&] {
    const int64_t channels = x.size(-1 - axes), first = weight.size(0);
    return first % groups == 0 && channels == (transposed ? first : weight.size(1) * groups) && weight.count();
  };
  if (!ranks || groups < 1 || !fits())
    refuse(name, "x is " + x.shape().text() + " and weight " + weight.shape().text() + ", groups " + std::to_string(groups) +
                     ": expected (n, c, ..) and " + (transposed ? "(c, o / groups, ..)" : "(o, c / groups, ..)"));
}

void require_bias(const char* name, const Tensor& bias, int64_t channels) {
  if (bias.defined() && bias.shape() != Shape{channels})
    refuse(name, "bias is " + bias.shape().text() + ": expected (" + std::to_string(channels) + ",)");
}

// The product of extents from..to.
int64_t extents(const Tensor& x, int from, int to) {
  int64_t count = 1;
  for (int i = from; i < to; ++i) count *= x.size(i);
  return count;
}

Tensor with_bias(const Tensor& out, const Tensor& bias, int axes) {
  if (!bias.defined()) return out;
  Shape shape = bias.shape();
  for (int i = 0; i < axes; ++i) shape.push_back(1);
  return add(out, reshape(bias, shape));
}

// A product per group: (groups, a, k) x (groups, k, b).
Tensor grouped(const Tensor& a, const Tensor& b) {
  if (a.size(0) != 1) return matmul(a, b);
  return unsqueeze(matmul(squeeze(a, {0}), squeeze(b, {0})), 0);
}

// x (n, c, ..): the windows become the columns (c k, n l) of a matrix, in which each group owns consecutive rows.
Tensor convolved(const char* name, const Tensor& x, const Tensor& weight, const Settings& how) {
  const int axes = x.rank() - 2;
  const Tensor padded = padded_axes(x, how.padding, 0);
  Tensor windows = padded;
  for (int i = 0; i < axes; ++i) {
    const size_t at = static_cast<size_t>(i);
    const Windows along{i + 2, weight.size(i + 2), how.stride[at], how.dilation[at]};
    require_window(name, padded, along);
    windows = windows_of(windows, along);
  }
  Shape order{1};  // channels, window, batch, positions
  for (int i = 0; i < axes; ++i) order.push_back(2 + axes + i);
  order.push_back(0);
  for (int i = 0; i < axes; ++i) order.push_back(2 + i);
  const int64_t out = weight.size(0), inner = extents(weight, 1, weight.rank());
  const int64_t columns = x.size(0) * extents(windows, 2, 2 + axes);
  const Tensor left = reshape(weight, {how.groups, out / how.groups, inner});
  const Tensor product = grouped(left, reshape(permute(windows, order), {how.groups, inner, columns}));
  Shape shape{out, x.size(0)};
  for (int i = 0; i < axes; ++i) shape.push_back(windows.size(2 + i));
  return contiguous(transpose(reshape(product, shape), 0, 1));
}

Tensor convolution(const char* name, const Tensor& x, const Tensor& weight, const Tensor& bias, int axes,
                   const Settings& how) {
  require_fitting(name, x, weight, axes, how.groups, false);
  require_bias(name, bias, weight.size(0));
  const bool batched = x.rank() == axes + 2;
  const Tensor out = with_bias(convolved(name, batched ? x : unsqueeze(x, 0), weight, how), bias, axes);
  return batched ? out : squeeze(out, {0});
}
}  // namespace

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
// x padded so that the result keeps its extents: of an odd number, the one more behind x.
Tensor padded_to_keep(const char* name, const Tensor& x, const Tensor& weight, int axes, const Settings& how) {
  require_fitting(name, x, weight, axes, how.groups, false);
  std::vector<int64_t> pads;
  for (size_t i = how.stride.size(); i-- > 0;) {
    if (how.stride[i] != 1)
      refuse(name, "padding is 'same' and stride " + how.stride.text() + ": 'same' needs stride 1, so give numbers instead");
    const int64_t total = (weight.size(static_cast<int>(i) + 2) - 1) * how.dilation[i];
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
// The windows (n, o, positions, window) that x (n, c, positions) adds.
Tensor added_windows(const Tensor& x, const Tensor& weight, int64_t groups) {
  const int axes = x.rank() - 2;
  const int64_t channels = weight.size(0), out = weight.size(1) * groups, inner = extents(weight, 1, weight.rank());
  const Tensor left = transpose(reshape(weight, {groups, channels / groups, inner}));
  const Tensor right = reshape(transpose(x, 0, 1), {groups, channels / groups, x.count() / channels});
  Shape shape{out}, order{axes + 1, 0};
  for (int i = 0; i < axes; ++i) shape.push_back(weight.size(i + 2));
  shape.push_back(x.size(0));
  for (int i = 0; i < axes; ++i) shape.push_back(x.size(i + 2));
  for (int i = 0; i < axes; ++i) order.push_back(axes + 2 + i);
  for (int i = 0; i < axes; ++i) order.push_back(1 + i);
  return permute(reshape(grouped(left, right), shape), order);
}

Tensor transposed(const char* name, const Tensor& x, const Tensor& weight, const Settings& how,
                  const Shape& output_padding) {
  Tensor out = added_windows(x, weight, how.groups);
  std::vector<int64_t> pads;
  for (int i = x.rank() - 3; i >= 0; --i) {
    const size_t at = static_cast<size_t>(i);
    const Windows along{i + 2, weight.size(i + 2), how.stride[at], how.dilation[at]};
    const int64_t extent = x.size(i + 2) ? (x.size(i + 2) - 1) * along.step + along.span() : 0;
    if (extent + output_padding[at] - 2 * how.padding[at] < 1)
      refuse(name,
             "x is " + x.shape().text() + " and padding " + how.padding.text() + ": they leave no elements, so pad less");
    out = add_windows(out, extent, along);
    pads.push_back(-how.padding[at]);
    pads.push_back(output_padding[at] - how.padding[at]);
  }
  return pad(out, pads);
}

Tensor transposed_convolution(const char* name, const Tensor& x, const Tensor& weight, const Tensor& bias,
                              const Shape& output_padding, const Settings& how) {
  const int axes = how.stride.rank();
  const Shape extra = per_axis(name, "output_padding", output_padding, axes, 0);
  require_fitting(name, x, weight, axes, how.groups, true);
  require_bias(name, bias, weight.size(1) * how.groups);
  for (size_t i = 0; i < extra.size(); ++i)
    if (extra[i] >= how.stride[i] && extra[i] >= how.dilation[i])
      refuse(name, "output_padding is " + extra.text() + ": it must be below stride or dilation");
  const bool batched = x.rank() == axes + 2;
  const Tensor out = with_bias(transposed(name, batched ? x : unsqueeze(x, 0), weight, how, extra), bias, axes);
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
