#include <plugrad/ops/resampling.hpp>

#include <core/ops/positions.hpp>
#include <core/ops/run.hpp>
#include <core/ops/spatial.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/indexing.hpp>
#include <plugrad/ops/logic.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/rounding.hpp>
#include <plugrad/ops/views.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace plugrad {
namespace {
constexpr const char* kGridSample = "grid_sample";

// --- Places along an axis, in elements of x: element i is at i.

struct Axis {
  int64_t extent;
  GridPadding padding;
  bool align_corners;
};

Tensor place_of(const Tensor& coordinate, const Axis& axis) {
  const double n = static_cast<double>(axis.extent);
  const Tensor from_zero = add(coordinate, 1);
  return axis.align_corners ? mul(div(from_zero, 2), n - 1) : div(sub(mul(from_zero, n), 1), 2);
}

// The gradient is 0 at both ends, as in PyTorch. NaN becomes 0.
Tensor clipped(const Tensor& place, int64_t extent) {
  const double most = static_cast<double>(extent - 1);
  return where(gt(place, 0), where(lt(place, most), place, most), 0);
}

// Mirrored at the centres of the outer elements, or at their outer edges.
Tensor mirrored(const Tensor& place, const Axis& axis) {
  const double low = axis.align_corners ? 0 : -0.5;
  const double period = 2 * static_cast<double>(axis.align_corners ? axis.extent - 1 : axis.extent);
  if (period == 0) return mul(place, 0);
  const Tensor distance = abs(sub(place, low));
  const Tensor rest = sub(distance, mul(floor(div(distance, period)), period));
  return add(minimum(rest, sub(period, rest)), low);
}

// The place in x for a place that may lie beyond x.
Tensor padded_place(const Tensor& place, const Axis& axis) {
  if (axis.padding == GridPadding::zeros) return place;
  return clipped(axis.padding == GridPadding::border ? place : mirrored(place, axis), axis.extent);
}

// Far places, infinite places and NaN become a place outside x that integers hold.
Tensor bounded(const Tensor& place, const Axis& axis) {
  constexpr double kFar = 100;
  if (axis.padding != GridPadding::zeros) return place;
  return where(lt(abs(place), static_cast<double>(axis.extent) + kFar), place, -kFar);
}

// --- The elements that make up a sample, and their weights.

struct Tap {
  Tensor position;  // within x
  Tensor inside;    // bool: whether x has the element; undefined where it always has
  Tensor weight;    // undefined for 1
};

Tap tap_at(const Tensor& position, const Tensor& weight, const Axis& axis) {
  if (axis.padding != GridPadding::zeros) return {position, {}, weight};
  const Tensor inside = logical_and(ge(position, 0), lt(position, axis.extent));
  return {where(inside, position, 0), inside, weight};
}

std::vector<Tap> nearest_taps(const Tensor& coordinate, const Axis& axis) {
  return {tap_at(round(bounded(padded_place(place_of(coordinate.detach(), axis), axis), axis)), {}, axis)};
}

std::vector<Tap> linear_taps(const Tensor& coordinate, const Axis& axis) {
  const Tensor place = bounded(padded_place(place_of(coordinate, axis), axis), axis);
  const Tensor low = floor(place.detach()), high = add(low, 1);
  // At the end of x the upper element has weight 0, and any element may be read in its place.
  const bool reads = axis.padding == GridPadding::zeros;
  return {tap_at(low, sub(high, place), axis), tap_at(reads ? high : minimum(high, axis.extent - 1), sub(place, low), axis)};
}

// The weights of the cube at distances below 1, and from 1 to 2.
Tensor inner_weight(const Tensor& t) { return add(mul(mul(sub(mul(t, 1.25), 2.25), t), t), 1); }
Tensor outer_weight(const Tensor& t) { return add(mul(sub(mul(add(mul(t, -0.75), 3.75), t), 6), t), 3); }

std::vector<Tap> cubic_taps(const Tensor& coordinate, const Axis& axis) {
  const Tensor place = bounded(place_of(coordinate, axis), axis), low = floor(place.detach());
  const Tensor upper = sub(place, low), lower = sub(1, upper);
  const Tensor weights[] = {outer_weight(add(upper, 1)), inner_weight(upper), inner_weight(lower),
                            outer_weight(add(lower, 1))};
  std::vector<Tap> taps;
  for (int j = 0; j < 4; ++j) taps.push_back(tap_at(padded_place(add(low, j - 1), axis), weights[j], axis));
  return taps;
}

std::vector<Tap> taps_of(const Tensor& coordinate, const Axis& axis, Resampling mode) {
  if (mode == Resampling::nearest) return nearest_taps(coordinate, axis);
  return mode == Resampling::bicubic ? cubic_taps(coordinate, axis) : linear_taps(coordinate, axis);
}

// Joins two taps of different axes: the second axis has `extent` elements.
Tap joined(const Tap& a, const Tap& b, int64_t extent) {
  const Tensor weight = a.weight.defined() ? mul(a.weight, b.weight) : Tensor();
  return {add(mul(a.position, extent), b.position), a.inside.defined() ? logical_and(a.inside, b.inside) : Tensor(), weight};
}

// --- All axes.

void require_fitting(const Tensor& x, const Tensor& grid, Resampling mode) {
  require_floating(kGridSample, x);
  require_floating(kGridSample, grid);
  require_together(kGridSample, x, grid);
  const int axes = x.rank() - 2;
  bool fits = (axes == 2 || axes == 3) && grid.rank() == x.rank() && grid.size(0) == x.size(0) && grid.size(-1) == axes;
  for (int i = 0; fits && i < axes; ++i) fits = x.size(i + 2) > 0;
  if (!fits)
    refuse(kGridSample, "x has shape " + x.shape().text() + " and grid " + grid.shape().text() +
                            ": expected (n, c, h, w) and (n, h', w', 2), or (n, c, d, h, w) and (n, d', h', w', 3)");
  if (mode != Resampling::bilinear && mode != Resampling::nearest && mode != Resampling::bicubic)
    refuse(kGridSample, "grid_sample does not have this mode: give bilinear, nearest or bicubic");
}

// The taps of all axes, with positions in x's flattened spatial axes. The last axis is the grid's first coordinate.
std::vector<Tap> all_taps(const Tensor& x, const Tensor& grid, Resampling mode, GridPadding padding, bool align_corners) {
  const int axes = x.rank() - 2;
  const Shape row = {x.size(0), 1, grid.count() / std::max<int64_t>(x.size(0) * axes, 1)};
  const DType dtype = position_dtype(x, x.count());
  std::vector<Tap> all;
  for (int i = 0; i < axes; ++i) {
    const Axis axis{x.size(i + 2), padding, align_corners};
    std::vector<Tap> taps = taps_of(reshape(select(grid, -1, axes - 1 - i), row), axis, mode), both;
    for (Tap& tap : taps) tap.position = cast(tap.position.detach(), dtype);
    for (const Tap& before : all)
      for (const Tap& tap : taps) both.push_back(joined(before, tap, axis.extent));
    all = i ? both : taps;
  }
  return all;
}

// x (n, c, spatial) at a tap (n, 1, samples).
Tensor sample(const Tensor& x, const Tap& tap) {
  const Shape shape = {x.size(0), x.size(1), tap.position.size(2)};
  const Tensor values = gather(x, 2, expand(cast(tap.position, DType::i64), shape));
  const Tensor kept = tap.inside.defined() ? where(tap.inside, values, 0) : values;
  return tap.weight.defined() ? mul(kept, tap.weight) : kept;
}
}  // namespace

Tensor grid_sample(const Tensor& x, const Tensor& grid, Resampling mode, GridPadding padding_mode,
                   std::optional<bool> align_corners) {
  require_fitting(x, grid, mode);
  Shape shape = x.shape();
  for (int i = 1; i < grid.rank() - 1; ++i) shape[static_cast<size_t>(i) + 1] = grid.size(i);
  const Tensor wide = at_least_f32(x);
  if (!shape.count()) return reshape(slice(reshape(x, {x.count()}), 0, 0, 0), shape);
  const Tensor flat = reshape(wide, {x.size(0), x.size(1), x.count() / (x.size(0) * x.size(1))});
  Tensor out;
  for (const Tap& tap : all_taps(wide, at_least_f32(grid), mode, padding_mode, align_corners.value_or(false)))
    out = out.defined() ? add(out, sample(flat, tap)) : sample(flat, tap);
  return cast(reshape(out, shape), x.dtype());
}

// --- Grids.

namespace {
// The coordinate of element i of an axis.
double coordinate_of(int64_t i, int64_t extent, bool align_corners) {
  const double at = static_cast<double>(i), n = static_cast<double>(extent);
  if (extent == 1) return 0;
  return align_corners ? 2 * at / (n - 1) - 1 : (2 * at + 1) / n - 1;
}

// The coordinates of all elements, the last axis first, and 1: (count, axes + 1).
std::vector<double> all_coordinates(const Shape& extents, bool align_corners) {
  std::vector<double> all;
  for (int64_t element = 0; element < extents.count(); ++element) {
    int64_t rest = element;
    for (size_t i = extents.size(); i-- > 0; rest /= extents[i])
      all.push_back(coordinate_of(rest % extents[i], extents[i], align_corners));
    all.push_back(1);
  }
  return all;
}
}  // namespace

Tensor affine_grid(const Tensor& theta, const Shape& size, std::optional<bool> align_corners) {
  constexpr const char* kGrid = "affine_grid";
  require_floating(kGrid, theta);
  const int axes = size.rank() - 2;
  bool fits = (axes == 2 || axes == 3) && theta.shape() == Shape{size[0], axes, axes + 1};
  for (const int64_t extent : size) fits = fits && extent > 0;
  if (!fits)
    refuse(kGrid, "theta has shape " + theta.shape().text() + " and size is " + size.text() +
                      ": expected (n, 2, 3) and (n, c, h, w), or (n, 3, 4) and (n, c, d, h, w), with no extent of 0");
  const Shape extents(std::span(size.begin() + 2, static_cast<size_t>(axes)));
  const Tensor wide = at_least_f32(theta);
  const Tensor places = constant(all_coordinates(extents, align_corners.value_or(false)), {extents.count(), axes + 1}, wide);
  Shape shape{size[0]};
  for (const int64_t extent : extents) shape.push_back(extent);
  shape.push_back(axes);
  return cast(reshape(matmul(places, transpose(wide)), shape), theta.dtype());
}

}  // namespace plugrad
