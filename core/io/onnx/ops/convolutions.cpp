#include <core/io/onnx/ops/named_activations.hpp>
#include <core/io/onnx/ops/shape_parts.hpp>
#include <core/io/onnx/ops/tables.hpp>
#include <core/io/onnx/ops/windows.hpp>
#include <plugrad/ops/arrangement.hpp>
#include <plugrad/ops/convolution.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/images.hpp>
#include <plugrad/ops/masks.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/error.hpp>

#include <algorithm>
#include <cstdlib>

namespace plugrad::io::onnx {
namespace {

Extents or_ones(Extents found, size_t axes) { return found.empty() ? Extents(axes, 1) : found; }

[[noreturn]] void too_many_axes(size_t axes) {
  throw Error(Code::unsupported, std::to_string(axes) + " spatial axes are not supported; at most 3 are");
}

Extents kernel_of(const Shape& weight) {
  if (weight.rank() < 3) throw Error(Code::invalid, "the weight " + weight.text() + " has no spatial axes");
  return Extents(weight.begin() + 2, weight.end());
}

void require_sizes(const Window& w) {
  constexpr int64_t kMost = int64_t{1} << 31;
  for (size_t d = 0; d < w.axes(); ++d) {
    Call::positive(w.kernel[d], "a kernel's extent");
    Call::positive(w.strides[d], "a stride");
    Call::positive(w.dilations[d], "a dilation");
    if (std::max(std::abs(w.before[d]), std::abs(w.after[d])) > kMost || w.before[d] < -kMost || w.after[d] < -kMost)
      throw Error(Code::invalid, "a padding is over 2^31");
  }
}
}  // namespace

Window window_of(const Call& c, const Shape& x, const Extents& kernel) {
  const size_t axes = kernel.size();
  Window w{kernel, or_ones(c.integers("strides"), axes), or_ones(c.integers("dilations"), axes), Extents(axes),
           Extents(axes)};
  if (static_cast<size_t>(x.rank()) != axes + 2 || w.strides.size() != axes || w.dilations.size() != axes)
    throw Error(Code::invalid,
                "the kernel, strides and dilations do not fit " + std::to_string(x.rank() - 2) + " spatial axes");
  require_sizes(w);
  const std::string mode = c.text("auto_pad", "NOTSET");
  const Extents pads = c.integers("pads");
  for (size_t d = 0; d < axes; ++d) {
    if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
      const int64_t extent = x[d + 2], steps = (extent + w.strides[d] - 1) / w.strides[d] - 1;
      const int64_t total = std::max<int64_t>(steps * w.strides[d] + (kernel[d] - 1) * w.dilations[d] + 1 - extent, 0);
      w.before[d] = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
      w.after[d] = total - w.before[d];
    } else if (mode != "VALID" && !pads.empty()) {
      w.before[d] = pads.at(d);
      w.after[d] = pads.at(d + axes);
    }
  }
  require_sizes(w);
  return w;
}

Tensor padded(const Tensor& x, const Extents& before, const Extents& after, Number value) {
  std::vector<int64_t> pads;
  bool any = false;
  for (size_t k = before.size(); k-- > 0;) {
    pads.push_back(before[k]);
    pads.push_back(after[k]);
    any |= before[k] || after[k];
  }
  return any ? pad(x, pads, value) : x;
}

namespace {
// Whether nothing happens along the last of two axes: kernels run along the first, in the layout of one axis.
bool is_a_column(const Tensor& x, const Window& w) {
  return w.axes() == 2 && x.size(3) == 1 && w.kernel[1] == 1 && !w.before[1] && !w.after[1];
}

Tensor without_last_axis(const Tensor& x) { return reshape(x, {x.size(0), x.size(1), x.size(2)}); }
}  // namespace

Tensor convolution(const Tensor& x, const Tensor& weight, const Tensor& bias, const Window& w, int64_t groups) {
  if (is_a_column(x, w)) {
    const Window column{{w.kernel[0]}, {w.strides[0]}, {w.dilations[0]}, {w.before[0]}, {w.after[0]}};
    return unsqueeze(convolution(without_last_axis(x), without_last_axis(weight), bias, column, groups), 3);
  }
  const bool even = w.before == w.after;
  const Tensor in = even ? x : padded(x, w.before, w.after);
  const Extents pads = even ? w.before : Extents(w.axes(), 0);
  switch (w.axes()) {
    case 1: return conv1d(in, weight, bias, w.strides, pads, w.dilations, groups);
    case 2: return conv2d(in, weight, bias, w.strides, pads, w.dilations, groups);
    case 3: return conv3d(in, weight, bias, w.strides, pads, w.dilations, groups);
    default: too_many_axes(w.axes());
  }
}

Tensor transposed_convolution(const Tensor& x, const Tensor& weight, const Tensor& bias, const Window& w,
                              const Extents& output_padding, int64_t groups) {
  switch (w.axes()) {
    case 1: return conv_transpose1d(x, weight, bias, w.strides, w.before, output_padding, groups, w.dilations);
    case 2: return conv_transpose2d(x, weight, bias, w.strides, w.before, output_padding, groups, w.dilations);
    case 3: return conv_transpose3d(x, weight, bias, w.strides, w.before, output_padding, groups, w.dilations);
    default: too_many_axes(w.axes());
  }
}

Tensor convolved(const Call& c, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return convolution(x, weight, bias, window_of(c, x.shape(), kernel_of(weight.shape())), c.integer("group", 1));
}

namespace {

Value convolution_value(Call& c) { return c.like(convolved(c, c.tensor(0), c.tensor(1), c.optional(2))); }

// A convolution, a tensor that is added, and an activation.
Value activated_convolution(Call& c) {
  const Tensor sums = convolved(c, c.tensor(0), c.tensor(1), c.optional(2));
  return c.like(named_activation(c, c.has(3) ? add(sums, c.tensor(3)) : sums));
}

// The extents that the transposed convolution should have: padding at both ends, and the extents that lack then.
struct Fit {
  Extents before, after, grow;
};
Fit fitted(const Call& c, const Window& w, const Extents& extra) {
  const Shape x = c.shape(0);
  const Extents asked = c.integers("output_shape");
  const std::string mode = c.text("auto_pad", "NOTSET");
  Fit fit{w.before, w.after, Extents(w.axes())};
  if (asked.empty() && mode != "SAME_UPPER" && mode != "SAME_LOWER") return fit;
  for (size_t d = 0; d < w.axes(); ++d) {
    const int64_t full = w.strides[d] * (x[d + 2] - 1) + extra[d] + (w.kernel[d] - 1) * w.dilations[d] + 1;
    const int64_t wanted = asked.empty() ? x[d + 2] * w.strides[d] : asked.at(asked.size() - w.axes() + d);
    const int64_t total = std::max<int64_t>(full - wanted, 0);
    fit.before[d] = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
    fit.after[d] = total - fit.before[d];
    fit.grow[d] = std::max<int64_t>(wanted - full, 0);
  }
  return fit;
}

Tensor plus_channels(const Tensor& x, const Tensor& bias) {
  if (!bias.defined()) return x;
  return add(x, reshape(bias, shape_along(x.rank(), 1, bias.count())));
}

Value transposed_value(Call& c) {
  Window w = window_of(c, c.shape(0), kernel_of(c.shape(1)));
  Extents extra = c.integers("output_padding");
  if (extra.empty()) extra = Extents(w.axes());
  if (extra.size() != w.axes()) throw Error(Code::invalid, "output_padding does not fit the spatial axes");
  const Fit fit = fitted(c, w, extra);
  const int64_t groups = c.integer("group", 1);
  bool plain = fit.before == fit.after;
  for (size_t d = 0; d < w.axes(); ++d)
    plain = plain && !fit.grow[d] && extra.at(d) < std::max(w.strides[d], w.dilations[d]);
  w.before = plain ? fit.before : Extents(w.axes());
  if (plain) return c.like(transposed_convolution(c.tensor(0), c.tensor(1), c.optional(2), w, extra, groups));
  const Tensor whole = transposed_convolution(c.tensor(0), c.tensor(1), {}, w, Extents(w.axes()), groups);
  Extents before(w.axes()), after(w.axes());
  for (size_t d = 0; d < w.axes(); ++d) {
    before[d] = -fit.before[d];
    after[d] = extra[d] + fit.grow[d] - fit.after[d];
  }
  return c.like(plus_channels(padded(whole, before, after), c.optional(2)));
}

// The columns (N, C times a block, places) become an image again: overlapping elements are added.
Value image_of_columns(Call& c) {
  const Extents image = c.integers(1), block = c.integers(2);
  const size_t axes = image.size();
  const Tensor& x = c.tensor(0);
  int64_t size = 1;
  if (x.rank() != 3 || block.size() != axes) throw Error(Code::invalid, "x (batch, columns, places) is expected");
  for (const int64_t each : block) size = Call::positive(size * Call::positive(each, "a block's extent"), "a block");
  const int64_t batch = x.size(0), channels = x.size(1) / size;
  Extents places{batch * channels, size}, ones{size, 1}, shape{batch, channels};
  Extents given(axes + 2, 1);
  Window w = window_of(c, Shape(given), block);
  for (size_t d = 0; d < axes; ++d) {
    const int64_t span = image[d] + w.before[d] + w.after[d] - ((block[d] - 1) * w.dilations[d] + 1);
    places.push_back(span / w.strides[d] + 1);
    ones.push_back(block[d]);
    shape.push_back(image[d]);
  }
  const Tensor weight = reshape(eye(size, -1, x.dtype(), c.device()), ones);
  Extents before(axes), after(axes);
  std::swap(before, w.before);
  const Tensor whole = transposed_convolution(reshape(x, places), weight, {}, w, Extents(axes), 1);
  for (size_t d = 0; d < axes; ++d) {
    after[d] = image[d] + before[d] - whole.size(static_cast<int>(d) + 2);
    before[d] = -before[d];
  }
  return c.like(reshape(padded(whole, before, after), shape));
}

constexpr Operator kConvolutions[] = {
    {"Conv", convolution_value},
    {"ConvTranspose", transposed_value},
    {"Col2Im", image_of_columns},
    {"com.microsoft.FusedConv", activated_convolution},
};
}  // namespace

std::span<const Operator> convolution_operators() { return kConvolutions; }

}  // namespace plugrad::io::onnx
