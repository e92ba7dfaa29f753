#include <core/io/onnx/ops/shape_parts.hpp>
#include <core/io/onnx/ops/tables.hpp>
#include <core/io/onnx/ops/windows.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/integers.hpp>
#include <plugrad/ops/pooling.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/scatter.hpp>
#include <plugrad/ops/statistics.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/error.hpp>

#include <algorithm>
#include <limits>

namespace plugrad::io::onnx {
namespace {

struct PoolWindow : Window {
  Extents ceiled;  // more padding at the ends, for windows that begin inside and end beyond
  bool is_even() const {
    for (size_t d = 0; d < axes(); ++d)
      if (before[d] != after[d] + ceiled[d] || 2 * before[d] > kernel[d]) return false;
    return true;
  }
};

PoolWindow pool_window(const Call& c) {
  const Shape x = c.shape(0);
  PoolWindow w{window_of(c, x, c.integers("kernel_shape")), {}};
  w.ceiled.resize(w.axes());
  if (w.axes() > 3) throw Error(Code::unsupported, "over 3 spatial axes are not supported");
  if (!c.integer("ceil_mode", 0) || c.text("auto_pad", "NOTSET") != "NOTSET") return w;
  for (size_t d = 0; d < w.axes(); ++d) {
    const int64_t reach = (w.kernel[d] - 1) * w.dilations[d] + 1, stride = w.strides[d];
    const int64_t whole = x[d + 2] + w.before[d] + w.after[d];
    int64_t count = (whole - reach + stride - 1) / stride + 1;
    if ((count - 1) * stride >= x[d + 2] + w.before[d]) --count;
    w.ceiled[d] = std::max<int64_t>((count - 1) * stride + reach - whole, 0);
  }
  return w;
}

Extents sum_of(Extents a, const Extents& b) {
  for (size_t d = 0; d < a.size(); ++d) a[d] += b[d];
  return a;
}

Tensor max_pooled(const Tensor& x, const PoolWindow& w, const Extents& pads) {
  if (w.axes() == 1) return max_pool1d(x, w.kernel, w.strides, pads, w.dilations);
  if (w.axes() == 2) return max_pool2d(x, w.kernel, w.strides, pads, w.dilations);
  return max_pool3d(x, w.kernel, w.strides, pads, w.dilations);
}

ValuesIndices max_pooled_with_indices(const Tensor& x, const PoolWindow& w, const Extents& pads) {
  if (w.axes() == 1) return max_pool1d_with_indices(x, w.kernel, w.strides, pads, w.dilations);
  if (w.axes() == 2) return max_pool2d_with_indices(x, w.kernel, w.strides, pads, w.dilations);
  return max_pool3d_with_indices(x, w.kernel, w.strides, pads, w.dilations);
}

// Positions in the padded image of each channel become positions in the whole input.
Tensor whole_positions(const Call& c, Tensor index, const PoolWindow& w, bool even) {
  const Shape x = c.shape(0);
  const size_t axes = w.axes();
  std::vector<Tensor> at(axes);
  int64_t size = 1;
  for (size_t d = axes; d-- > 0;) {
    const int64_t extent = even ? x[d + 2] : x[d + 2] + w.before[d] + w.after[d] + w.ceiled[d];
    at[d] = sub(remainder(index, extent), even ? 0 : w.before[d]);
    index = floor_divide(index, extent);
    size *= x[d + 2];
  }
  Tensor flat;
  const bool column_major = c.integer("storage_order", 0);
  for (size_t k = 0; k < axes; ++k) {
    const size_t d = column_major ? axes - 1 - k : k;
    flat = flat.defined() ? add(mul(flat, x[d + 2]), at[d]) : at[d];
  }
  Shape channels(std::vector<int64_t>(axes + 2, 1));
  channels[0] = x[0];
  channels[1] = x[1];
  return add(flat, reshape(mul(c.arange(x[0] * x[1]), size), channels));
}

Values max_pools(Call& c) {
  const PoolWindow w = pool_window(c);
  const bool even = w.is_even();
  Tensor x = c.floating(0) ? c.tensor(0) : cast(c.tensor(0), DType::f32);
  if (!even) x = padded(x, w.before, sum_of(w.after, w.ceiled), -std::numeric_limits<double>::infinity());
  const Extents pads = even ? w.before : Extents(w.axes());
  if (!c.wants(1)) return {c.like(max_pooled(x, w, pads))};
  const ValuesIndices found = max_pooled_with_indices(x, w, pads);
  return {c.like(found.values), whole_positions(c, found.indices, w, even)};
}

Tensor average_pooled(const Tensor& x, const PoolWindow& w, bool count_padding) {
  if (w.axes() == 1) return avg_pool1d(x, w.kernel, w.strides, w.before, false, count_padding);
  if (w.axes() == 2) return avg_pool2d(x, w.kernel, w.strides, w.before, false, count_padding);
  return avg_pool3d(x, w.kernel, w.strides, w.before, false, count_padding);
}

// The sums over all windows of each channel, of an input that is padded already.
Tensor window_sums(const Call& c, const Tensor& x, PoolWindow w) {
  Extents ones_shape{1, 1}, flat{-1, 1};
  for (const int64_t each : w.kernel) ones_shape.push_back(each);
  for (int d = 2; d < x.rank(); ++d) flat.push_back(x.size(d));
  w.before = w.after = Extents(w.axes());
  const Tensor weight = ones(Shape(ones_shape), x.dtype(), c.device());
  const Tensor sums = convolution(reshape(x, flat), weight, {}, w, 1);
  Extents shape{x.size(0), x.size(1)};
  for (int d = 2; d < sums.rank(); ++d) shape.push_back(sums.size(d));
  return reshape(sums, shape);
}

}  // namespace

Tensor average_pooled_value(const Call& c, const Tensor& x) {
  const PoolWindow w = pool_window(c);
  const bool count_padding = c.integer("count_include_pad", 0);
  const bool undilated = std::ranges::all_of(w.dilations, [](int64_t each) { return each == 1; });
  const bool whole = std::ranges::all_of(w.ceiled, [](int64_t each) { return each == 0; });
  if (undilated && whole && w.is_even()) return average_pooled(x, w, count_padding);
  const Extents none(w.axes());
  Extents one_shape{1, 1};
  for (int d = 2; d < x.rank(); ++d) one_shape.push_back(x.size(d));
  const Tensor one = padded(ones(Shape(one_shape), x.dtype(), c.device()), w.before, w.after, count_padding ? 1 : 0);
  const Tensor sums = window_sums(c, padded(x, w.before, sum_of(w.after, w.ceiled)), w);
  return div(sums, window_sums(c, padded(one, none, w.ceiled), w));
}

namespace {

Value lp_pools(Call& c) {
  const PoolWindow w = pool_window(c);
  const double p = static_cast<double>(c.integer("p", 2));
  const Tensor powers = padded(pow(abs(c.tensor(0)), p), w.before, sum_of(w.after, w.ceiled));
  return c.like(pow(window_sums(c, powers, w), 1 / p));
}

Value unpooled(Call& c) {
  const Shape x = c.shape(0);
  const Extents kernel = c.integers("kernel_shape");
  const Window w = window_of(c, x, kernel);
  Extents shape{x[0], x[1]}, after;
  int64_t count = x[0] * x[1];
  for (size_t d = 0; d < w.axes(); ++d) {
    shape.push_back((x[d + 2] - 1) * w.strides[d] - w.before[d] - w.after[d] + kernel[d]);
    count *= shape.back();
  }
  const Tensor none = zeros({count}, c.tensor(0).dtype(), c.device());
  const Tensor index = reshape(c.tensor(1), {c.tensor(1).count()});
  Tensor result = reshape(scatter(none, 0, index, reshape(c.tensor(0), {c.tensor(0).count()})), shape);
  if (!c.has(2)) return c.like(result);
  const Extents wanted = c.integers(2);
  for (size_t d = 0; d < w.axes(); ++d) after.push_back(wanted.at(d + 2) - shape[d + 2]);
  return c.like(padded(result, Extents(w.axes()), after));
}

constexpr Operator kPoolings[] = {
    {"GlobalAveragePool", [](Call& c) { return c.like(mean(c.tensor(0), spatial_axes(c.rank(0)), true)); }},
    {"GlobalMaxPool", [](Call& c) { return c.like(amax(c.tensor(0), spatial_axes(c.rank(0)), true)); }},
    {"GlobalLpPool",
     [](Call& c) {
       return c.like(norm(c.tensor(0), static_cast<double>(c.integer("p", 2)), spatial_axes(c.rank(0)), true));
     }},
    {"MaxPool", max_pools},
    {"AveragePool", [](Call& c) { return c.like(average_pooled_value(c, c.tensor(0))); }},
    {"LpPool", lp_pools},
    {"MaxUnpool", unpooled},
};
}  // namespace

std::span<const Operator> pooling_operators() { return kPoolings; }

}  // namespace plugrad::io::onnx
