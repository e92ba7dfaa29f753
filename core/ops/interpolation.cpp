#include <plugrad/ops/resampling.hpp>

#include <core/ops/spatial.hpp>
#include <core/ops/taps.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/pooling.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/numbers.hpp>

#include <algorithm>
#include <cmath>
#include <string>

namespace plugrad {
namespace {
constexpr const char* kResize = "interpolate";

// The number of spatial axes for a mode; 0 for all.
int axes_of(Resampling mode) {
  switch (mode) {
    case Resampling::linear: return 1;
    case Resampling::bilinear:
    case Resampling::bicubic: return 2;
    case Resampling::trilinear: return 3;
    default: return 0;
  }
}
bool is_nearest(Resampling mode) { return mode == Resampling::nearest || mode == Resampling::nearest_exact; }

void require_mode(const Tensor& x, Resampling mode, bool aligns, bool antialias) {
  require_defined(x, kResize);
  if (!is_nearest(mode)) require_floating(kResize, x);
  const int axes = x.rank() - 2;
  if (axes < 1 || axes > 3 || (axes_of(mode) && axes != axes_of(mode)))
    refuse(kResize, "x has shape " + x.shape().text() + ": expected (n, c, l) for linear, (n, c, h, w) for bilinear and " +
                        "bicubic, (n, c, d, h, w) for trilinear, and any of them for the other modes");
  if (aligns && !axes_of(mode)) refuse(kResize, "align_corners is given: it has a meaning for lines and cubes only");
  if (antialias && axes_of(mode) != 2) refuse(kResize, "antialias is given: only bilinear and bicubic have it");
}

// The extents, by size or by the factors.
Shape new_extents(const Tensor& x, const Shape& size, const std::vector<double>& factors) {
  const int axes = x.rank() - 2;
  if (size.empty() == factors.empty()) refuse(kResize, "size and scale_factor: give one of them");
  Shape extents;
  for (int i = 0; i < axes && size.empty(); ++i) {
    const double factor = factors[factors.size() == 1 ? 0 : static_cast<size_t>(i)];
    const double extent = std::floor(static_cast<double>(x.size(i + 2)) * factor);
    extents.push_back(extent < 0x1p62 ? static_cast<int64_t>(extent) : int64_t{1} << 62);
  }
  if (!size.empty()) extents = per_axis(kResize, "size", size, axes, 0);
  for (int i = 0; i < axes; ++i)
    if (x.size(i + 2) < 1 || extents[static_cast<size_t>(i)] < 1)
      refuse(kResize, "x has shape " + x.shape().text() + " and the result would have the extents " + extents.text() +
                          ": expected 1 or more");
  return extents;
}

// A factor for each axis.
std::vector<double> all_factors(const std::vector<double>& factors, int axes) {
  for (const double each : factors)
    if (!(each > 0) || !std::isfinite(each))
      refuse(kResize, "a scale_factor is " + number_text(each) + ": give a number above 0");
  if (factors.size() > 1 && factors.size() != static_cast<size_t>(axes))
    refuse(kResize, "there are " + std::to_string(factors.size()) + " scale factors and " + std::to_string(axes) +
                        " axes: give one for each");
  return factors.size() == 1 ? std::vector<double>(static_cast<size_t>(axes), factors[0]) : factors;
}

Taps taps_of(const Resizing& axis, Resampling mode, bool antialias) {
  const int reach = mode == Resampling::bicubic ? 2 : 1;
  require_table(kResize, antialias ? smooth_count(axis, reach) : is_nearest(mode) ? 1 : 2 * reach, axis.to);
  if (is_nearest(mode)) return nearest_taps(axis, mode == Resampling::nearest_exact);
  if (antialias) return smooth_taps(axis, reach);
  return mode == Resampling::bicubic ? cubic_taps(axis) : linear_taps(axis);
}

bool is_copy(const Resizing& axis, Resampling mode, bool antialias) {
  const bool moves = axis.factor && !antialias && (is_nearest(mode) || mode == Resampling::bicubic);
  return axis.from == axis.to && !moves;
}

Tensor resized(const Tensor& x, int at, const Taps& taps) {
  const Tensor all = chosen(x, at, taps.positions);
  if (taps.each == 1) return all;
  const int64_t count = all.size(at) / taps.each;
  Shape along(std::vector<int64_t>(static_cast<size_t>(x.rank() - at + 1), 1));
  along[0] = count;
  along[1] = taps.each;
  return sum(mul(unflatten(all, at, {count, taps.each}), constant(taps.weights, along, x)), {at + 1});
}

Tensor area(const Tensor& x, const Shape& extents) {
  const int axes = extents.rank();
  if (axes == 1) return adaptive_avg_pool1d(x, extents);
  return axes == 2 ? adaptive_avg_pool2d(x, extents) : adaptive_avg_pool3d(x, extents);
}
}  // namespace

Tensor interpolate(const Tensor& x, const Shape& size, const std::vector<double>& scale_factor, Resampling mode,
                   std::optional<bool> align_corners, std::optional<bool> recompute_scale_factor, bool antialias) {
  require_mode(x, mode, align_corners.has_value(), antialias);
  const int axes = x.rank() - 2;
  const std::vector<double> factors = all_factors(scale_factor, axes);
  const Shape extents = new_extents(x, size, factors);
  const bool recomputes = recompute_scale_factor.value_or(false);
  if (recomputes && factors.empty()) refuse(kResize, "recompute_scale_factor is given without scale_factor: leave it out");
  if (mode == Resampling::area) return area(x, extents);
  Tensor out = is_nearest(mode) ? x : at_least_f32(x);
  for (int i = axes; i-- > 0;) {
    const size_t at = static_cast<size_t>(i);
    const auto factor = factors.empty() || recomputes ? std::nullopt : std::optional(factors[at]);
    const Resizing axis{x.size(i + 2), extents[at], factor, align_corners.value_or(false)};
    if (!is_copy(axis, mode, antialias)) out = resized(out, i + 2, taps_of(axis, mode, antialias));
  }
  return cast(out, x.dtype());
}

}  // namespace plugrad
