#include <core/ops/convolution_ops.hpp>

#include <core/ops/run.hpp>
#include <core/ops/spatial.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/arrangement.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/views.hpp>

#include <algorithm>

namespace plugrad {
namespace {
using Settings = ConvolutionSettings;

plugrad_convolution attributes_of(const Settings& how) {
  plugrad_convolution attributes{sizeof attributes, 0, how.groups, {}, {}, {}};
  std::ranges::copy(how.stride, attributes.stride);
  std::ranges::copy(how.padding, attributes.padding);
  std::ranges::copy(how.dilation, attributes.dilation);
  return attributes;
}

// The product of extents from..to.
int64_t extents(const Tensor& x, int from, int to) {
  int64_t count = 1;
  for (int i = from; i < to; ++i) count *= x.size(i);
  return count;
}

// A product per group: (groups, a, k) x (groups, k, b).
Tensor grouped(const Tensor& a, const Tensor& b) {
  if (a.size(0) != 1) return matmul(a, b);
  return unsqueeze(matmul(squeeze(a, {0}), squeeze(b, {0})), 0);
}

// --- Compositions. The windows of x (n, c, ..) become the columns of a matrix. Each group has consecutive rows of it:
// (groups, c / groups * window, n * positions).
Tensor columns_of(const Tensor& x, const Shape& counts, const Shape& weight, const Settings& how) {
  const int axes = x.rank() - 2;
  Tensor windows = padded_axes(x, how.padding, 0);
  Shape order{1};  // channels, window, batch, positions
  for (int i = 0; i < axes; ++i) {
    const size_t at = static_cast<size_t>(i);
    windows = windows_of(windows, {i + 2, weight[at + 2], how.stride[at], how.dilation[at]});
    order.push_back(2 + axes + i);
  }
  order.push_back(0);
  for (int i = 0; i < axes; ++i) order.push_back(2 + i);
  int64_t rows = x.size(1) / how.groups, columns = x.size(0);
  for (size_t i = 2; i < weight.size(); ++i) {
    rows *= weight[i];
    columns *= counts[i];
  }
  return reshape(permute(windows, order), {how.groups, rows, columns});
}

// grad (n, o, ..) as rows of channels: (groups, o / groups, n * positions).
Tensor rows_of(const Tensor& grad, int64_t groups) {
  const int64_t channels = grad.size(1);
  return reshape(transpose(grad, 0, 1), {groups, channels / groups, grad.count() / channels});
}

Tensor composed(const Tensor& x, const Tensor& weight, const Shape& shape, const Settings& how) {
  const int64_t out = weight.size(0), inner = extents(weight, 1, weight.rank());
  const Tensor product =
      grouped(reshape(weight, {how.groups, out / how.groups, inner}), columns_of(x, shape, weight.shape(), how));
  Shape turned = shape;
  std::swap(turned[0], turned[1]);
  return contiguous(transpose(reshape(product, turned), 0, 1));
}

// The windows (n, c, positions, window) added by grad.
Tensor added_windows(const Tensor& grad, const Tensor& weight, int64_t groups) {
  const int axes = grad.rank() - 2;
  const int64_t out = weight.size(0), inner = extents(weight, 1, weight.rank());
  const Tensor left = transpose(reshape(weight, {groups, out / groups, inner}));
  Shape shape{weight.size(1) * groups}, order{axes + 1, 0};
  for (int i = 0; i < axes; ++i) shape.push_back(weight.size(i + 2));
  shape.push_back(grad.size(0));
  for (int i = 0; i < axes; ++i) shape.push_back(grad.size(i + 2));
  for (int i = 0; i < axes; ++i) order.push_back(axes + 2 + i);
  for (int i = 0; i < axes; ++i) order.push_back(1 + i);
  return permute(reshape(grouped(left, rows_of(grad, groups)), shape), order);
}

// Several windows add to an element, so halves are rounded at the end.
Tensor composed_input_gradient(const Tensor& grad, const Tensor& weight, const Shape& shape, const Settings& how) {
  if (are_halves(grad, weight)) return rounded_once(grad, composed_input_gradient, grad, weight, shape, how);
  Tensor out = added_windows(grad, weight, how.groups);
  std::vector<int64_t> pads;
  for (int i = grad.rank() - 3; i >= 0; --i) {
    const size_t at = static_cast<size_t>(i);
    const Windows along = how.windows(weight.shape(), i);
    const int64_t extent = grad.size(i + 2) ? (grad.size(i + 2) - 1) * along.step + along.span() : Extent(0);
    out = add_windows(out, extent, along);
    pads.push_back(-how.padding[at]);
    pads.push_back(shape[at + 2] + how.padding[at] - extent);
  }
  return pad(out, pads);
}

Tensor composed_weight_gradient(const Tensor& grad, const Tensor& x, const Shape& shape, const Settings& how) {
  const Tensor columns = columns_of(x, grad.shape(), shape, how);
  return reshape(grouped(rows_of(grad, how.groups), transpose(columns, 1, 2)), shape);
}

// --- The device's kernel, or the composition, unrecorded. Tensors without elements are composed.

Tensor empty_for(Op op, const Tensor& x, const Shape& shape) {
  DeviceState& device = device_of(x);
  return empty_like(op, device, dense_view(shape, dtype_of(x), device.info.alignment), dtype_of(x));
}

template <class Compose>
Tensor run_or(Op op, const Tensor& a, const Tensor& b, const Shape& shape, const Settings& how, Compose compose) {
  const Tensor out = empty_for(op, a, shape);
  if (out.count() && a.count() && b.count()) {
    if (try_run(op, {out}, {a, b}, attributes_of(how))) return out;
    count_decomposition(a);
  }
  const NoGrad unrecorded;
  return compose(a, b, shape, how);
}

Tensor run_convolution(const Tensor& x, const Tensor& weight, const Tensor& bias, const Shape& shape, const Settings& how) {
  if (bias.defined() && x.count() && shape.count()) {
    const Tensor out = empty_for(Op::CONVOLUTION_BIAS, x, shape);
    if (try_run(Op::CONVOLUTION_BIAS, {out}, {x, weight, bias}, attributes_of(how))) return out;
  }
  const Tensor out = run_or(Op::CONVOLUTION, x, weight, shape, how, composed);
  const NoGrad unrecorded;
  return with_bias(out, bias);
}

// The gradients' data besides tensors.
struct Kept {
  Settings how;
  Shape shape;  // of the first operand
};
Tensor convolve_again(const Tensor& x, const Tensor& weight, const Kept& kept) {
  return convolve(x, weight, {}, kept.shape, kept.how);
}
}  // namespace

Tensor with_bias(const Tensor& out, const Tensor& bias) {
  if (!bias.defined()) return out;
  Shape shape = bias.shape();
  for (int i = 2; i < out.rank(); ++i) shape.push_back(1);
  return add(out, reshape(bias, shape));
}

namespace {
// Calls f with the operands in their common dtype. They must share a device. bias may be undefined.
template <class F> Tensor together(const Tensor& x, const Tensor& weight, const Tensor& bias, F f) {
  for (const Tensor* each : {&weight, &bias})
    if (each->defined() && &device_of(*each) != &device_of(x)) throw_not_together("convolution", x, *each);
  DType dtype = promote_types(x.dtype(), weight.dtype());
  if (bias.defined()) dtype = promote_types(dtype, bias.dtype());
  return f(cast(x, dtype), cast(weight, dtype), bias.defined() ? cast(bias, dtype) : bias);
}
bool are_together(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return is_together(x, weight) && (!bias.defined() || is_together(x, bias));
}
}  // namespace

namespace {
constexpr auto kInputGradient =
    gradient<kShape, kInput1, kPayload>([](const Tensor& grad, const Shape& of, const Tensor& w, const Settings& kept) {
      return convolution_input_gradient(grad, w, of, kept);
    });
constexpr auto kWeightGradient =
    gradient<kShape, kInput0, kPayload>([](const Tensor& grad, const Shape& of, const Tensor& in, const Settings& kept) {
      return convolution_weight_gradient(grad, in, of, kept);
    });
constexpr auto kBiasGradient = gradient([](const Tensor& grad) {
  Shape axes{0};
  for (int i = 2; i < grad.rank(); ++i) axes.push_back(i);
  return sum(grad, axes);
});
constexpr auto kRule = rule("convolution", kInputGradient, kWeightGradient);
constexpr auto kBiasRule = rule("convolution", kInputGradient, kWeightGradient, kBiasGradient);
}  // namespace

Tensor convolve(const Tensor& x, const Tensor& weight, const Tensor& bias, const Shape& shape, const Settings& how) {
  if (!are_together(x, weight, bias)) [[unlikely]]
    return together(x, weight, bias,
                    [&](const Tensor& a, const Tensor& w, const Tensor& b) { return convolve(a, w, b, shape, how); });
  if (!bias.defined()) return differentiable(kRule, how, run_convolution(x, weight, bias, shape, how), x, weight);
  return differentiable(kBiasRule, how, run_convolution(x, weight, bias, shape, how), x, weight, bias);
}

Tensor native_convolve(const Tensor& x, const Tensor& weight, const Shape& shape, const Settings& how) {
  const Tensor out = empty_for(Op::CONVOLUTION, x, shape);
  if (!try_run(Op::CONVOLUTION, {out}, {x, weight}, attributes_of(how))) return {};
  return differentiable(kRule, how, out, x, weight);
}

Tensor convolution_input_gradient(const Tensor& grad, const Tensor& weight, const Shape& shape, const Settings& how) {
  static constexpr auto kRule =
      rule("convolution_input_gradient", gradient<kInput1, kPayload>([](const Tensor& g, const Tensor& w, const Kept& kept) {
             return convolve_again(g, w, kept);
           }),
           gradient<kShape, kInput0, kPayload>([](const Tensor& g, const Shape& of, const Tensor& grad0, const Kept& kept) {
             return convolution_weight_gradient(grad0, g, of, kept.how);
           }));
  if (!are_together(grad, weight, {})) [[unlikely]]
    return together(grad, weight, {}, [&](const Tensor& g, const Tensor& w, const Tensor&) {
      return convolution_input_gradient(g, w, shape, how);
    });
  return differentiable(kRule, {how, grad.shape()},
                        run_or(Op::CONVOLUTION_INPUT_GRAD, grad, weight, shape, how, composed_input_gradient), grad, weight);
}

Tensor convolution_weight_gradient(const Tensor& grad, const Tensor& x, const Shape& shape, const Settings& how) {
  static constexpr auto kRule = rule(
      "convolution_weight_gradient", gradient<kInput1, kPayload>([](const Tensor& g, const Tensor& in, const Kept& kept) {
        return convolve_again(in, g, kept);
      }),
      gradient<kShape, kInput0, kPayload>([](const Tensor& g, const Shape& of, const Tensor& grad0, const Kept& kept) {
        return convolution_input_gradient(grad0, g, of, kept.how);
      }));
  return differentiable(kRule, {how, grad.shape()},
                        run_or(Op::CONVOLUTION_WEIGHT_GRAD, grad, x, shape, how, composed_weight_gradient), grad, x);
}

}  // namespace plugrad
