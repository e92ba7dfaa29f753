#include <core/ops/pooling_windows.hpp>

#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/indexing.hpp>
#include <plugrad/ops/views.hpp>

#include <algorithm>

namespace plugrad {

Shape last_axes(int axes) {
  Shape all;
  for (int i = 0; i < axes; ++i) all.push_back(i - axes);
  return all;
}
Shape spatial_extents(const Tensor& x, int axes) {
  Shape all;
  for (int i = x.rank() - axes; i < x.rank(); ++i) all.push_back(x.size(i));
  return all;
}

namespace {
void require_spatial(const char* name, const Tensor& x, int axes) {
  require_floating(name, x);
  if ((x.rank() != axes + 1 && x.rank() != axes + 2) ||
      !std::ranges::all_of(spatial_extents(x, axes), [](int64_t each) { return each > 0; }))
    refuse(name, "x has shape " + x.shape().text() + ": expected rank " + std::to_string(axes + 2) + ", or " +
                     std::to_string(axes + 1) + " without a batch, and elements along the last " + std::to_string(axes));
}

// The number of windows along axis i.
int64_t count_of(const Pooled& pool, size_t i, bool ceil_mode) {
  const Extent n = pool.extents[i], stride = pool.stride[i], before = pool.padding[i];
  const Extent span = (Extent(pool.size[i]) - 1) * pool.dilation[i] + 1;
  const Extent room = n + 2 * before - span;
  if (room < 0)
    refuse(pool.name, "a window spans " + std::to_string(span) + " elements, but the padded x has " +
                          std::to_string(n + 2 * before) + " along an axis: give smaller windows or more padding");
  const Extent count = (ceil_mode && room > 0 ? (room - 1) / stride + 1 : room / stride) + 1;
  return ceil_mode && (count - 1) * stride >= n + before ? count - 1 : count;
}
}  // namespace

bool Pooled::pads() const {
  const auto positive = [](int64_t each) { return each > 0; };
  return std::ranges::any_of(padding, positive) || std::ranges::any_of(beyond, positive);
}

Pooled pool_of(const char* name, const Tensor& x, int axes, const PoolArguments& arguments) {
  require_spatial(name, x, axes);
  const auto& [size, stride, padding, dilation, ceil_mode] = arguments;
  const Shape sizes = per_axis(name, "kernel_size", size, axes, 1);
  Pooled pool{name,
              spatial_extents(x, axes),
              sizes,
              stride.empty() ? sizes : per_axis(name, "stride", stride, axes, 1),
              per_axis(name, "padding", padding, axes, 0),
              per_axis(name, "dilation", dilation, axes, 1),
              {},
              {}};
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] > pool.extents[i]) require_table(name, 1, sizes[i]);  // most of the window is padding
    if (pool.padding[i] > sizes[i] / 2)
      refuse(name, "padding is " + padding.text() + " and kernel_size " + size.text() + ": pad by half of it at most");
    pool.counts.push_back(count_of(pool, i, ceil_mode));
    const Windows windows{0, sizes[i], pool.stride[i], pool.dilation[i]};
    const Extent end = (pool.counts[i] - 1) * windows.step + windows.span();
    pool.beyond.push_back(std::max<int64_t>(end - pool.extents[i] - pool.padding[i], 0));
    const Windows used = windows.used(Extent(pool.extents[i]) + pool.padding[i] + pool.beyond.back());
    pool.stride[i] = used.step;
    pool.dilation[i] = used.dilation;
  }
  return pool;
}

Tensor padded_for(const Tensor& x, const Pooled& pool, Number value) {
  std::vector<int64_t> pads;
  for (size_t i = pool.padding.size(); i-- > 0;) {
    pads.push_back(pool.padding[i]);
    pads.push_back(pool.beyond[i]);
  }
  return pool.pads() ? pad(x, pads, value) : x;
}

Tensor windows_for(const Tensor& padded, const Pooled& pool) {
  Tensor windows = padded;
  for (int i = 0; i < pool.axes(); ++i) {
    const size_t at = static_cast<size_t>(i);
    windows = windows_of(windows, {padded.rank() - pool.axes() + i, pool.size[at], pool.stride[at], pool.dilation[at]});
  }
  return windows;
}

// --- Adaptive pooling.

int64_t Cuts::longest() const {
  int64_t most = 0;
  for (int64_t i = 0; i < count; ++i) most = std::max(most, end(i) - begin(i));
  return most;
}

Shape adaptive_size(const char* name, const Tensor& x, int axes, const Shape& output_size) {
  require_spatial(name, x, axes);
  const Shape all = per_axis(name, "output_size", output_size, axes, 0);
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i] != spatial_extents(x, axes)[i]) require_table(name, 1, all[i]);
  return all;
}

Tensor cut(const Tensor& x, int axis, const Cuts& cuts, Number value) {
  const int at = normal_axis(axis, x.rank(), "cut");
  const int64_t longest = cuts.longest();
  if (cuts.equal()) return unflatten(x, at, {cuts.count, longest});
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < cuts.count; ++i)
    for (int64_t j = cuts.begin(i); j < cuts.begin(i) + longest; ++j) positions.push_back(j < cuts.end(i) ? j : cuts.extent);
  std::vector<int64_t> pads(2 * static_cast<size_t>(x.rank() - at), 0);
  pads.back() = 1;
  return unflatten(chosen(pad(x, pads, value), at, positions), at, {cuts.count, longest});
}

}  // namespace plugrad
