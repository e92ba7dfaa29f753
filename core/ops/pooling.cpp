#include <plugrad/ops/pooling.hpp>

#include <core/ops/spatial.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/activations.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/indexing.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/views.hpp>

#include <limits>

namespace plugrad {
namespace {
struct Pool {
  const char* name;
  Shape size, stride, padding, dilation;

  int axes() const { return size.rank(); }
  Windows along(int i, int rank) const {
    const size_t at = static_cast<size_t>(i);
    return {rank - axes() + i, size[at], stride[at], dilation[at]};
  }
};

Pool pool_of(const char* name, const Tensor& x, int axes, const Shape& size, const Shape& stride, const Shape& padding,
             const Shape& dilation) {
  require_floating(name, x);
  if (x.rank() != axes + 1 && x.rank() != axes + 2)
    refuse(name, "x has shape " + x.shape().text() + ": expected rank " + std::to_string(axes + 2) + ", or " +
                     std::to_string(axes + 1) + " without a batch");
  const Shape sizes = per_axis(name, "kernel_size", size, axes, 1);
  const Pool pool{name, sizes, stride.empty() ? sizes : per_axis(name, "stride", stride, axes, 1),
                  per_axis(name, "padding", padding, axes, 0), per_axis(name, "dilation", dilation, axes, 1)};
  for (size_t i = 0; i < sizes.size(); ++i)
    if (2 * pool.padding[i] > sizes[i])
      refuse(name, "padding is " + padding.text() + " and kernel_size " + size.text() + ": pad by half of it at most");
  return pool;
}

// The windows of x, whose elements are the last axes.
Tensor pool_windows(const Tensor& padded, const Pool& pool) {
  Tensor windows = padded;
  for (int i = 0; i < pool.axes(); ++i) {
    const Windows along = pool.along(i, padded.rank());
    require_window(pool.name, padded, along);
    windows = windows_of(windows, along);
  }
  return windows;
}

Shape window_axes(const Pool& pool) {
  Shape axes;
  for (int i = 0; i < pool.axes(); ++i) axes.push_back(i - pool.axes());
  return axes;
}

// --- Maxima.

// Where the elements with these numbers within their windows lie, counted along the flattened spatial axes.
Tensor flat_positions(const Tensor& within, const Tensor& padded, const Pool& pool) {
  // The positions of all elements of the spatial axes, taken apart as the elements were.
  Shape spatial;
  for (int i = padded.rank() - pool.axes(); i < padded.rank(); ++i) spatial.push_back(padded.size(i));
  const Tensor every = reshape(arange(0, spatial.count(), 1, DType::i64, padded.device()), spatial);
  const Tensor windows = pool_windows(every, pool);
  const int64_t size = pool.size.count(), count = windows.count() / size;
  // Row w of the matrix is the positions of window w.
  const Tensor matrix = reshape(windows, {count, size});
  const Tensor numbers = transpose(reshape(within, {within.count() / count, count}));
  return reshape(transpose(gather(matrix, 1, numbers)), within.shape());
}

Tensor max_pool(const Tensor& x, const Pool& pool) {
  const Tensor padded = padded_axes(x, pool.padding, -std::numeric_limits<double>::infinity());
  const Tensor windows = pool_windows(padded.detach(), pool);
  Shape shape = windows.shape(), rows{1};
  shape = Shape(std::span(shape.begin(), static_cast<size_t>(padded.rank())));
  if (!shape.count()) return reshape(slice(reshape(x, {x.count()}), 0, 0, 0), shape);
  int64_t leading = 1;
  for (int i = 0; i < padded.rank() - pool.axes(); ++i) leading *= padded.size(i);
  const Tensor positions = flat_positions(argmax(windows, window_axes(pool)), padded, pool);
  const Tensor flat = reshape(padded, {leading, padded.count() / leading});
  return reshape(gather(flat, 1, reshape(positions, {leading, shape.count() / leading})), shape);
}

// --- Means.

Tensor avg_pool(const Tensor& x, const Pool& pool, bool count_include_pad) {
  const Tensor windows = pool_windows(padded_axes(x, pool.padding, 0), pool);
  if (count_include_pad || !std::ranges::any_of(pool.padding, [](int64_t each) { return each > 0; }))
    return mean(windows, window_axes(pool));
  Shape spatial;
  for (int i = x.rank() - pool.axes(); i < x.rank(); ++i) spatial.push_back(x.size(i));
  const Tensor counted = padded_axes(ones(spatial, x.dtype(), x.device()), pool.padding, 0);
  return div(sum(windows, window_axes(pool)), sum(pool_windows(counted, pool), window_axes(pool)));
}

// A matrix (out, in) whose row i has equal weights in the window of output i.
Tensor averaging_matrix(int64_t in, int64_t out, const Tensor& like) {
  std::vector<double> weights(static_cast<size_t>(in * out));
  for (int64_t i = 0; i < out; ++i) {
    const int64_t start = i * in / out, end = ((i + 1) * in + out - 1) / out;
    for (int64_t j = start; j < end; ++j) weights[static_cast<size_t>(i * in + j)] = 1 / static_cast<double>(end - start);
  }
  const bool is_double = like.dtype() == DType::f64;
  const Tensor single =
      is_double ? Tensor() : Tensor::from(std::vector<float>(weights.begin(), weights.end()), {out, in}, like.device());
  return is_double ? Tensor::from(weights, {out, in}, like.device()) : single;
}
}  // namespace

Tensor max_pool1d(const Tensor& x, const Shape& kernel_size, const Shape& stride, const Shape& padding,
                  const Shape& dilation) {
  return max_pool(x, pool_of("max_pool1d", x, 1, kernel_size, stride, padding, dilation));
}
Tensor max_pool2d(const Tensor& x, const Shape& kernel_size, const Shape& stride, const Shape& padding,
                  const Shape& dilation) {
  return max_pool(x, pool_of("max_pool2d", x, 2, kernel_size, stride, padding, dilation));
}
Tensor avg_pool1d(const Tensor& x, const Shape& kernel_size, const Shape& stride, const Shape& padding,
                  bool count_include_pad) {
  return avg_pool(x, pool_of("avg_pool1d", x, 1, kernel_size, stride, padding, {1}), count_include_pad);
}
Tensor avg_pool2d(const Tensor& x, const Shape& kernel_size, const Shape& stride, const Shape& padding,
                  bool count_include_pad) {
  return avg_pool(x, pool_of("avg_pool2d", x, 2, kernel_size, stride, padding, {1}), count_include_pad);
}

Tensor adaptive_avg_pool2d(const Tensor& x, const Shape& output_size) {
  constexpr const char* kName = "adaptive_avg_pool2d";
  require_floating(kName, x);
  if ((x.rank() != 3 && x.rank() != 4) || !x.size(-1) || !x.size(-2))
    refuse(kName, "x has shape " + x.shape().text() + ": expected (n, c, h, w) or (c, h, w), with h and w at least 1");
  const Shape out = per_axis(kName, "output_size", output_size, 2, 0);
  const Tensor wide = at_least_f32(x), rows = averaging_matrix(x.size(-2), out[0], wide);
  const Tensor columns = transpose(averaging_matrix(x.size(-1), out[1], wide));
  return cast(matmul(rows, matmul(wide, columns)), x.dtype());
}

}  // namespace plugrad
