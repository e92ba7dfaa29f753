#include <plugrad/ops/pooling.hpp>

#include <core/ops/argument.hpp>
#include <core/ops/backward.hpp>
#include <core/ops/infinity.hpp>
#include <core/ops/pooling_windows.hpp>
#include <core/ops/run.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/gradients.hpp>
#include <plugrad/ops/indexing.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/scatter.hpp>
#include <plugrad/ops/views.hpp>

#include <algorithm>
#include <optional>
#include <utility>

namespace plugrad {
namespace {

// The numbers of elements in the flattened spatial axes, in the shape of these.
Tensor numbered(const Shape& extents, Device device) {
  return reshape(arange(0, extents.count(), 1, DType::i64, device), extents);
}

// The positions of the elements with these numbers within their windows. windows: the positions of all elements of the
// windows; the last axes are a window's elements.
Tensor flat_positions(const Tensor& within, const Tensor& windows, int axes) {
  const int64_t size = spatial_extents(windows, axes).count(), count = windows.count() / size;
  // Row w of the matrix is the positions of window w.
  const Tensor matrix = reshape(windows, {count, size});
  const Tensor numbers = transpose(reshape(within, {within.count() / count, count}));
  return reshape(transpose(gather(matrix, 1, numbers)), within.shape());
}

// The elements of x at positions (n, c, ..) in its flattened spatial axes.
Tensor at_positions(const Tensor& x, const Tensor& positions, int axes) {
  const int64_t plane = spatial_extents(positions, axes).count(), leading = positions.count() / plane;
  const Tensor flat = reshape(x, {leading, x.count() / leading});
  return reshape(gather(flat, 1, reshape(positions, {leading, plane})), positions.shape());
}

// No elements, of x's graph.
ValuesIndices nothing(const Tensor& x, const Shape& shape) {
  return {reshape(slice(reshape(x, {x.count()}), 0, 0, 0), shape), zeros(shape, DType::i64, x.device())};
}
// The shape of x with new spatial extents.
Shape with_extents(const Tensor& x, const Shape& extents) {
  Shape shape = x.shape();
  for (size_t i = 0; i < extents.size(); ++i) shape[shape.size() - extents.size() + i] = extents[i];
  return shape;
}

// --- Windows at equal distances.

// Whether dilated windows may lie in the padding as a whole.
bool may_miss(const Pooled& pool) {
  for (size_t i = 0; i < pool.size.size(); ++i)
    if (pool.padding[i] && pool.dilation[i] > 1) return true;
  return false;
}

std::vector<int64_t> pads_of(const Pooled& pool) {
  std::vector<int64_t> pads;
  for (size_t i = pool.padding.size(); i-- > 0;) pads.insert(pads.end(), {pool.padding[i], pool.beyond[i]});
  return pads;
}

ValuesIndices composed_max_pool(const Tensor& x, const Pooled& pool) {
  const int axes = pool.axes();
  const Tensor padded = padded_for(x, pool, -kInfinity);
  const Tensor within = argmax(windows_for(padded.detach(), pool), last_axes(axes));
  // A window of nothing but -inf names its first element or, if this is padding, the element of x beside it.
  const Tensor numbers = numbered(pool.extents, x.device());
  const Tensor grid = pool.pads() ? pad(numbers, pads_of(pool), PadMode::replicate) : numbers;
  const Tensor indices = flat_positions(within, windows_for(grid, pool), axes);
  if (!may_miss(pool)) return {at_positions(x, indices, axes), indices};
  const Tensor all = numbered(spatial_extents(padded, axes), x.device());
  return {at_positions(padded, flat_positions(within, windows_for(all, pool), axes), axes), indices};
}

// Zeros of this shape (n, c, ..), with grad added at its positions.
Tensor added_at(const Tensor& grad, const Tensor& indices, const Shape& shape) {
  static constexpr auto kRule =
      rule("max_pool_backward",
           gradient<kInput1>([](const Tensor& g, const Tensor& from) { return at_positions(g, from, from.rank() - 2); }),
           kNoGradient);
  DeviceState& device = device_of(grad);
  const plugrad_view whole = dense_view(shape, dtype_of(grad), device.info.alignment);
  Tensor out = empty_like(Op::MAX_POOL_BACKWARD, device, whole, dtype_of(grad));
  if (!try_run(Op::MAX_POOL_BACKWARD, {out}, {grad, indices})) {
    count_decomposition(grad);
    const NoGrad unrecorded;
    const int64_t leading = shape[0] * shape[1];
    const Shape planes{leading, shape.count() / leading}, flat{leading, grad.count() / leading};
    out = reshape(scatter_add(zeros(planes, grad.dtype(), grad.device()), 1, reshape(indices, flat), reshape(grad, flat)),
                  shape);
  }
  return differentiable(kRule, std::move(out), grad, indices);
}

}  // namespace

Tensor max_pool_backward(const Tensor& grad, const Tensor& indices, const Shape& x_shape) {
  constexpr const char* kName = "max_pool_backward";
  require_floating(kName, grad);
  require_dtype(kName, indices, DType::i64, "indices");
  bool fits = grad.rank() >= 3 && grad.rank() <= 5 && grad.shape() == indices.shape() && x_shape.rank() == grad.rank() &&
              x_shape[0] == grad.size(0) && x_shape[1] == grad.size(1);
  if (!fits || &device_of(grad) != &device_of(indices))
    refuse(kName, "grad is " + grad.shape().text() + ", indices " + indices.shape().text() + " and x " + x_shape.text() +
                      ": expected (n, c, ..) on one device, grad and indices of one shape");
  const WithoutGraph plainly;
  if (!grad.count()) return zeros(x_shape, grad.dtype(), grad.device());
  return added_at(grad, indices, x_shape);
}

namespace {
// x is (n, c, ..).
std::optional<ValuesIndices> native_max_pool(const Tensor& x, const Pooled& pool) {
  static constexpr auto kRule =
      rule("max_pool", gradient<kShape, kInput1>([](const Tensor& grad, const Shape& shape, const Tensor& indices) {
             return added_at(grad, indices, shape);
           }),
           kNoGradient);
  plugrad_pool attributes{sizeof attributes, 0, {}, {}, {}, {}};
  std::ranges::copy(pool.size, attributes.size);
  std::ranges::copy(pool.stride, attributes.stride);
  std::ranges::copy(pool.padding, attributes.padding);
  std::ranges::copy(pool.dilation, attributes.dilation);
  DeviceState& device = device_of(x);
  const plugrad_view like = dense_view(with_extents(x, pool.counts), dtype_of(x), device.info.alignment);
  Tensor values = empty_like(Op::MAX_POOL, device, like, dtype_of(x));
  const Tensor indices = empty_like(Op::MAX_POOL, device, like, PLUGRAD_I64);
  if (!try_run(Op::MAX_POOL, {values, indices}, {x}, attributes)) {
    count_decomposition(x);
    return std::nullopt;
  }
  return ValuesIndices{differentiable(kRule, std::move(values), x, indices), indices};
}

ValuesIndices max_pool(const Tensor& x, const Pooled& pool) {
  const Shape shape = with_extents(x, pool.counts);
  if (!shape.count()) return nothing(x, shape);
  if (may_miss(pool)) return composed_max_pool(x, pool);  // the op's windows have elements
  const bool batched = x.rank() == pool.axes() + 2;
  const auto native = native_max_pool(batched ? x : unsqueeze(x, 0), pool);
  if (!native) return composed_max_pool(x, pool);
  if (batched) return *native;
  return {squeeze(native->values, {0}), squeeze(native->indices, {0})};
}

// --- Windows covering x.

// The windows of a tensor with the spatial extents of x, their elements as the last axes.
Tensor cut_windows(Tensor x, const Shape& counts, Number value) {
  const int axes = counts.rank(), leading = x.rank() - axes;
  for (int i = axes; i-- > 0;) x = cut(x, leading + i, {x.size(leading + i), counts[static_cast<size_t>(i)]}, value);
  Shape order;
  for (int i = 0; i < leading; ++i) order.push_back(i);
  for (int part = 0; part < 2; ++part)
    for (int i = 0; i < axes; ++i) order.push_back(leading + 2 * i + part);
  return permute(x, order);
}

ValuesIndices adaptive_maxima(const char* name, const Tensor& x, int axes, const Shape& output_size) {
  const Shape counts = adaptive_size(name, x, axes, output_size), shape = with_extents(x, counts);
  if (!shape.count()) return nothing(x, shape);
  const Tensor within = argmax(cut_windows(x.detach(), counts, -kInfinity), last_axes(axes));
  const Tensor grid = cut_windows(numbered(spatial_extents(x, axes), x.device()), counts, 0);
  const Tensor indices = flat_positions(within, grid, axes);
  return {at_positions(x, indices, axes), indices};
}
}  // namespace

ValuesIndices max_pool1d_with_indices(const Tensor& x, const Shape& kernel_size, const Shape& stride, const Shape& padding,
                                      const Shape& dilation, bool ceil_mode) {
  return max_pool(x, pool_of("max_pool1d", x, 1, {kernel_size, stride, padding, dilation, ceil_mode}));
}
ValuesIndices max_pool2d_with_indices(const Tensor& x, const Shape& kernel_size, const Shape& stride, const Shape& padding,
                                      const Shape& dilation, bool ceil_mode) {
  return max_pool(x, pool_of("max_pool2d", x, 2, {kernel_size, stride, padding, dilation, ceil_mode}));
}
ValuesIndices max_pool3d_with_indices(const Tensor& x, const Shape& kernel_size, const Shape& stride, const Shape& padding,
                                      const Shape& dilation, bool ceil_mode) {
  return max_pool(x, pool_of("max_pool3d", x, 3, {kernel_size, stride, padding, dilation, ceil_mode}));
}
Tensor max_pool1d(const Tensor& x, const Shape& kernel_size, const Shape& stride, const Shape& padding,
                  const Shape& dilation, bool ceil_mode) {
  return max_pool1d_with_indices(x, kernel_size, stride, padding, dilation, ceil_mode).values;
}
Tensor max_pool2d(const Tensor& x, const Shape& kernel_size, const Shape& stride, const Shape& padding,
                  const Shape& dilation, bool ceil_mode) {
  return max_pool2d_with_indices(x, kernel_size, stride, padding, dilation, ceil_mode).values;
}
Tensor max_pool3d(const Tensor& x, const Shape& kernel_size, const Shape& stride, const Shape& padding,
                  const Shape& dilation, bool ceil_mode) {
  return max_pool3d_with_indices(x, kernel_size, stride, padding, dilation, ceil_mode).values;
}

ValuesIndices adaptive_max_pool1d_with_indices(const Tensor& x, const Shape& output_size) {
  return adaptive_maxima("adaptive_max_pool1d", x, 1, output_size);
}
ValuesIndices adaptive_max_pool2d_with_indices(const Tensor& x, const Shape& output_size) {
  return adaptive_maxima("adaptive_max_pool2d", x, 2, output_size);
}
ValuesIndices adaptive_max_pool3d_with_indices(const Tensor& x, const Shape& output_size) {
  return adaptive_maxima("adaptive_max_pool3d", x, 3, output_size);
}
Tensor adaptive_max_pool1d(const Tensor& x, const Shape& output_size) {
  return adaptive_max_pool1d_with_indices(x, output_size).values;
}
Tensor adaptive_max_pool2d(const Tensor& x, const Shape& output_size) {
  return adaptive_max_pool2d_with_indices(x, output_size).values;
}
Tensor adaptive_max_pool3d(const Tensor& x, const Shape& output_size) {
  return adaptive_max_pool3d_with_indices(x, output_size).values;
}

// --- The reverse.

namespace {
// x (leading, count) at positions of zeros (leading, plane).
Tensor put_in_planes(const Tensor& x, const Tensor& positions, int64_t plane) {
  static constexpr auto kRule =
      rule("max_unpool", gradient<kInput1>([](const Tensor& grad, const Tensor& from) { return gather(grad, 1, from); }),
           kNoGradient);
  const Tensor none = zeros({x.size(0), plane}, x.dtype(), x.device());
  return differentiable(kRule, scatter(none, 1, positions, ungraphed(x)), x, positions);
}

// The spatial extents of the result.
Shape unpooled_extents(const char* name, const Pooled& pool, const Shape& output_size) {
  Shape extents;
  for (size_t i = 0; i < pool.size.size(); ++i)
    extents.push_back((pool.extents[i] - 1) * pool.stride[i] - 2 * pool.padding[i] + pool.size[i]);
  if (output_size.empty()) return extents;
  Shape given;
  const size_t from = output_size.size() == extents.size() + 2 ? 2 : 0;
  for (size_t i = from; i < output_size.size(); ++i) given.push_back(output_size[i]);
  bool fits = given.rank() == extents.rank();
  for (size_t i = 0; fits && i < extents.size(); ++i) fits = std::abs(given[i] - extents[i]) < pool.stride[i];
  if (!fits) refuse(name, "output_size is " + output_size.text() + ": expected less than a stride from " + extents.text());
  return given;
}

struct Unpooling {
  const Shape &size, &stride, &padding, &output_size;
};

Tensor unpooled(const char* name, const Tensor& x, const Tensor& indices, int axes, const Unpooling& how) {
  // The windows of x do not matter here, only the arguments.
  const Shape one{1};
  const Pooled pool = pool_of(name, x, axes, {one, one, {0}, one, false});
  require_dtype(name, indices, DType::i64, "indices");
  if (indices.shape() != x.shape())
    refuse(name, "x has shape " + x.shape().text() + " and indices " + indices.shape().text() + ": they must be equal");
  Pooled given = pool;
  given.size = per_axis(name, "kernel_size", how.size, axes, 1);
  given.stride = how.stride.empty() ? given.size : per_axis(name, "stride", how.stride, axes, 1);
  given.padding = per_axis(name, "padding", how.padding, axes, 0);
  const Shape extents = unpooled_extents(name, given, how.output_size), shape = with_extents(x, extents);
  if (!x.count()) return nothing(x, shape).values;
  const int64_t leading = x.count() / pool.extents.count();
  const Shape flat = {leading, pool.extents.count()};
  return reshape(put_in_planes(reshape(x, flat), reshape(indices, flat), extents.count()), shape);
}
}  // namespace

Tensor max_unpool1d(const Tensor& x, const Tensor& indices, const Shape& kernel_size, const Shape& stride,
                    const Shape& padding, const Shape& output_size) {
  return unpooled("max_unpool1d", x, indices, 1, {kernel_size, stride, padding, output_size});
}
Tensor max_unpool2d(const Tensor& x, const Tensor& indices, const Shape& kernel_size, const Shape& stride,
                    const Shape& padding, const Shape& output_size) {
  return unpooled("max_unpool2d", x, indices, 2, {kernel_size, stride, padding, output_size});
}
Tensor max_unpool3d(const Tensor& x, const Tensor& indices, const Shape& kernel_size, const Shape& stride,
                    const Shape& padding, const Shape& output_size) {
  return unpooled("max_unpool3d", x, indices, 3, {kernel_size, stride, padding, output_size});
}

}  // namespace plugrad
