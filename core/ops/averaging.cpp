// Pooling by means and powers.
#include <plugrad/ops/pooling.hpp>

#include <core/ops/convolution_ops.hpp>
#include <core/ops/pooling_windows.hpp>
#include <plugrad/ops/activations.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/powers.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/views.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

namespace plugrad {
namespace {
// The numbers of counted elements of the windows along axis i.
std::vector<double> element_counts(const Pooled& pool, size_t i, bool count_include_pad) {
  std::vector<double> counts;
  const int64_t n = pool.extents[i], before = pool.padding[i];
  for (int64_t window = 0; window < pool.counts[i]; ++window) {
    const int64_t start = window * pool.stride[i] - before, end = std::min(start + pool.size[i], n + before);
    counts.push_back(static_cast<double>(count_include_pad ? end - start : std::min(end, n) - std::max<int64_t>(start, 0)));
  }
  return counts;
}

// The same for windows of all axes, in a shape for broadcasting to the result.
Tensor window_counts(const Pooled& pool, bool count_include_pad, const Tensor& like) {
  Tensor all;
  for (size_t i = 0; i < pool.size.size(); ++i) {
    Shape shape(std::vector<int64_t>(pool.size.size(), 1));
    shape[i] = pool.counts[i];
    const Tensor along = constant(element_counts(pool, i, count_include_pad), shape, like);
    all = all.defined() ? mul(all, along) : along;
  }
  return all;
}

bool all_count(const Pooled& pool, bool count_include_pad) {
  for (size_t i = 0; i < pool.size.size(); ++i)
    for (const double count : element_counts(pool, i, count_include_pad))
      if (count != static_cast<double>(pool.size[i])) return false;
  return true;
}

// The sums of windows of x, by a convolution with ones. Undefined on a device without its op.
Tensor convolved_sums(const Tensor& x, const Pooled& pool) {
  bool even = true;  // the windows end in the padding
  for (size_t i = 0; i < pool.size.size(); ++i) even = even && pool.beyond[i] <= pool.padding[i];
  const Tensor padded = even ? x : padded_for(x, pool, 0);
  if (!padded.count() || !pool.counts.count()) return {};
  Shape images{padded.count() / spatial_extents(padded, pool.axes()).count(), 1}, weight{1, 1}, sums = images, none;
  for (size_t i = 0; i < pool.size.size(); ++i) {
    images.push_back(padded.size(static_cast<int>(i) - pool.axes()));
    weight.push_back(pool.size[i]);
    sums.push_back(pool.counts[i]);
    none.push_back(0);
  }
  const ConvolutionSettings how{pool.stride, even ? pool.padding : none, pool.dilation, 1};
  const Tensor all = native_convolve(reshape(padded, images), ones(weight, x.dtype(), x.device()), sums, how);
  if (!all.defined()) return all;
  Shape shape = x.shape();
  std::ranges::copy(pool.counts, shape.end() - pool.axes());
  return reshape(all, shape);
}

Tensor avg_pool(const Tensor& x, const Pooled& pool, bool count_include_pad, std::optional<int64_t> divisor = std::nullopt) {
  if (divisor && !*divisor) refuse(pool.name, "divisor_override is 0: give another number, or none");
  const Shape axes = last_axes(pool.axes());
  if (const Tensor sums = convolved_sums(at_least_f32(x), pool); sums.defined()) {
    const bool even = divisor || all_count(pool, count_include_pad);
    const Tensor means =
        even ? div(sums, divisor ? *divisor : pool.size.count()) : div(sums, window_counts(pool, count_include_pad, sums));
    return cast(means, x.dtype());
  }
  if (!divisor && all_count(pool, count_include_pad)) return mean(windows_for(padded_for(x, pool, 0), pool), axes);
  const Tensor wide = at_least_f32(x), sums = sum(windows_for(padded_for(wide, pool, 0), pool), axes);
  return cast(divisor ? div(sums, *divisor) : div(sums, window_counts(pool, count_include_pad, wide)), x.dtype());
}

Tensor lp_pool(const Tensor& x, double norm_type, const Pooled& pool) {
  if (!(norm_type != 0)) refuse(pool.name, "norm_type is 0 or NaN: give another number");
  const Tensor means = avg_pool(pow(at_least_f32(x), norm_type), pool, true);
  // The power's derivative at 0 is infinite; the derivative at 1 is taken in its place.
  const Tensor counts = ne(means, 0), sums = where(counts, mul(means, pool.size.count()), 1);
  return cast(where(counts, pow(sums, 1 / norm_type), std::pow(0.0, 1 / norm_type)), x.dtype());
}

// The means of an axis's cuts.
Tensor cut_means(const Tensor& x, int axis, int64_t count) {
  const Cuts cuts{x.size(axis), count};
  if (cuts.extent == count) return x;
  const Tensor parts = cut(x, axis, cuts, 0);
  if (cuts.equal()) return mean(parts, {axis + 1});
  std::vector<double> counts;
  for (int64_t i = 0; i < count; ++i) counts.push_back(static_cast<double>(cuts.end(i) - cuts.begin(i)));
  Shape along(std::vector<int64_t>(static_cast<size_t>(x.rank() - axis), 1));
  along[0] = count;
  return div(sum(parts, {axis + 1}), constant(counts, along, x));
}

Tensor adaptive_means(const char* name, const Tensor& x, int axes, const Shape& output_size) {
  const Shape out = adaptive_size(name, x, axes, output_size);
  Tensor means = at_least_f32(x);
  for (int i = axes; i-- > 0;) means = cut_means(means, x.rank() - axes + i, out[static_cast<size_t>(i)]);
  return cast(means, x.dtype());
}
}  // namespace

Tensor avg_pool1d(const Tensor& x, const Shape& kernel_size, const Shape& stride, const Shape& padding, bool ceil_mode,
                  bool count_include_pad) {
  return avg_pool(x, pool_of("avg_pool1d", x, 1, {kernel_size, stride, padding, {1}, ceil_mode}), count_include_pad);
}
Tensor avg_pool2d(const Tensor& x, const Shape& kernel_size, const Shape& stride, const Shape& padding, bool ceil_mode,
                  bool count_include_pad, std::optional<int64_t> divisor_override) {
  return avg_pool(x, pool_of("avg_pool2d", x, 2, {kernel_size, stride, padding, {1}, ceil_mode}), count_include_pad,
                  divisor_override);
}
Tensor avg_pool3d(const Tensor& x, const Shape& kernel_size, const Shape& stride, const Shape& padding, bool ceil_mode,
                  bool count_include_pad, std::optional<int64_t> divisor_override) {
  return avg_pool(x, pool_of("avg_pool3d", x, 3, {kernel_size, stride, padding, {1}, ceil_mode}), count_include_pad,
                  divisor_override);
}

Tensor lp_pool1d(const Tensor& x, double norm_type, const Shape& kernel_size, const Shape& stride, bool ceil_mode) {
  return lp_pool(x, norm_type, pool_of("lp_pool1d", x, 1, {kernel_size, stride, {0}, {1}, ceil_mode}));
}
Tensor lp_pool2d(const Tensor& x, double norm_type, const Shape& kernel_size, const Shape& stride, bool ceil_mode) {
  return lp_pool(x, norm_type, pool_of("lp_pool2d", x, 2, {kernel_size, stride, {0}, {1}, ceil_mode}));
}
Tensor lp_pool3d(const Tensor& x, double norm_type, const Shape& kernel_size, const Shape& stride, bool ceil_mode) {
  return lp_pool(x, norm_type, pool_of("lp_pool3d", x, 3, {kernel_size, stride, {0}, {1}, ceil_mode}));
}

Tensor adaptive_avg_pool1d(const Tensor& x, const Shape& output_size) {
  return adaptive_means("adaptive_avg_pool1d", x, 1, output_size);
}
Tensor adaptive_avg_pool2d(const Tensor& x, const Shape& output_size) {
  return adaptive_means("adaptive_avg_pool2d", x, 2, output_size);
}
Tensor adaptive_avg_pool3d(const Tensor& x, const Shape& output_size) {
  return adaptive_means("adaptive_avg_pool3d", x, 3, output_size);
}

}  // namespace plugrad
