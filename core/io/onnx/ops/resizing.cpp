#include <core/io/onnx/ops/shape_parts.hpp>
#include <core/io/onnx/ops/tables.hpp>
#include <core/io/onnx/ops/windows.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/resampling.hpp>
#include <plugrad/ops/selection.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/error.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace plugrad::io::onnx {
namespace {

// One axis of a resize.
struct Resized {
  int axis;
  int64_t from, to;
  double scale;
  double begin = 0, end = 1;  // of the region of interest, as parts of the axis
};

struct Sampling {
  std::string mode = "nearest", coordinates = "half_pixel", nearest = "round_prefer_floor";
  double cubic = -0.75;
  bool exclude_outside = false, antialias = false;
};

Sampling sampling_of(const Call& c) {
  Sampling s;
  s.mode = c.text("mode", "nearest");
  if (c.node_is("Upsample") || c.opset() < 11) {
    s.coordinates = "asymmetric";
    s.nearest = "floor";
    return s;
  }
  s.coordinates = c.text("coordinate_transformation_mode", "half_pixel");
  s.nearest = c.text("nearest_mode", "round_prefer_floor");
  s.cubic = c.real("cubic_coeff_a", -0.75);
  s.exclude_outside = c.integer("exclude_outside", 0);
  s.antialias = c.integer("antialias", 0);
  return s;
}

// The product is rounded to f32, as ONNX Runtime computes it: 10 times 0.7 is 7.
int64_t scaled_extent(int64_t from, double scale) {
  const float product = static_cast<float>(from) * static_cast<float>(scale);
  return Call::countable(static_cast<double>(std::floor(product)));
}

std::vector<Resized> resized_axes(const Call& c) {
  const Shape x = c.shape(0);
  const bool old = c.node_is("Upsample") || c.opset() < 11;
  std::vector<int64_t> axes = c.integers("axes");
  if (axes.empty())
    for (int d = 0; d < x.rank(); ++d) axes.push_back(d);
  std::vector<double> scales;
  if (old) scales = c.has(1) ? c.reals(1) : c.reals("scales");
  else if (c.has(2) && c.tensor(2).count()) scales = c.reals(2);
  const std::vector<int64_t> sizes = scales.empty() ? c.integers(3) : std::vector<int64_t>();
  std::vector<Resized> all;
  for (size_t k = 0; k < axes.size(); ++k) {
    const int axis = Call::axis(axes[k], x.rank());
    const int64_t from = x[static_cast<size_t>(axis)];
    if (scales.empty())
      all.push_back({axis, from, sizes.at(k), static_cast<double>(sizes.at(k)) / static_cast<double>(from)});
    else all.push_back({axis, from, scaled_extent(from, scales.at(k)), scales[k]});
  }
  return all;
}

// With an aspect ratio to keep, all axes have the smallest or the largest scale.
void keep_aspect(const Call& c, std::vector<Resized>& all) {
  const std::string policy = c.text("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch" || all.empty() || (c.has(2) && c.tensor(2).count())) return;
  const auto [low, high] = std::ranges::minmax_element(all, {}, &Resized::scale);
  const double scale = policy == "not_larger" ? low->scale : high->scale;
  for (Resized& each : all) {
    each.scale = scale;
    each.to = Call::countable(std::floor(scale * static_cast<double>(each.from) + 0.5));
  }
}

// The place in the input of element i. align_corners divides by the rounded extent, as ONNX Runtime and PyTorch do.
double unbounded_place(const Resized& r, const std::string& mode, int64_t i) {
  const double at = static_cast<double>(i), from = static_cast<double>(r.from), to = static_cast<double>(r.to);
  if (mode == "asymmetric") return at / r.scale;
  if (mode == "align_corners") return r.to > 1 ? at * (from - 1) / (to - 1) : 0;
  if (mode == "pytorch_half_pixel") return r.to > 1 ? (at + 0.5) / r.scale - 0.5 : 0;
  if (mode == "tf_half_pixel_for_nn") return (at + 0.5) / r.scale;
  if (mode == "half_pixel_symmetric") return from / 2 * (1 - to / (from * r.scale)) + (at + 0.5) / r.scale - 0.5;
  if (mode == "tf_crop_and_resize") {
    if (r.to > 1) return r.begin * (from - 1) + at * (r.end - r.begin) * (from - 1) / (to - 1);
    return 0.5 * (r.begin + r.end) * (from - 1);
  }
  if (mode == "half_pixel") return (at + 0.5) / r.scale - 0.5;
  throw Error(Code::invalid, "the coordinate transformation '" + mode + "' is unknown");
}

// As above, at most a whole axis beyond the input, so that neighbours can be counted.
double place_of(const Resized& r, const std::string& mode, int64_t i) {
  const double reach = 2 * static_cast<double>(r.from) + 8;
  return std::clamp(unbounded_place(r, mode, i), -reach, reach);
}

double nearest_place(double at, const std::string& mode) {
  if (mode == "round_prefer_floor") return std::ceil(at - 0.5);
  if (mode == "round_prefer_ceil") return std::floor(at + 0.5);
  return mode == "floor" ? std::floor(at) : std::ceil(at);
}

double kernel_at(double d, const Sampling& s) {
  d = std::abs(d);
  const double a = s.cubic;
  if (s.mode == "linear") return std::max(0.0, 1 - d);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

// The weights (to, from) of a linear or cubic resize of one axis.
std::vector<double> resize_weights(const Resized& r, const Sampling& s) {
  std::vector<double> all(static_cast<size_t>(r.to * r.from));
  const double narrow = s.antialias ? std::min(r.scale, 1.0) : 1.0, reach = (s.mode == "linear" ? 1 : 2) / narrow;
  for (int64_t i = 0; i < r.to; ++i) {
    double at = place_of(r, s.coordinates, i), total = 0;
    if (s.mode == "linear" && !s.antialias) at = std::clamp<double>(at, 0, static_cast<double>(r.from - 1));
    std::map<int64_t, double> row;
    for (int64_t j = static_cast<int64_t>(std::floor(at - reach)); j <= static_cast<int64_t>(std::ceil(at + reach)); ++j) {
      const double weight = kernel_at((at - static_cast<double>(j)) * narrow, s);
      if (weight == 0 || (s.exclude_outside && (j < 0 || j >= r.from))) continue;
      row[std::clamp<int64_t>(j, 0, r.from - 1)] += weight;
      total += weight;
    }
    for (const auto& [j, weight] : row)
      all[static_cast<size_t>(i * r.from + j)] = s.exclude_outside || s.antialias ? weight / total : weight;
  }
  return all;
}

Tensor resized_nearest(const Call& c, const Tensor& x, const Resized& r, const Sampling& s) {
  std::vector<int64_t> places;
  for (int64_t i = 0; i < r.to; ++i) {
    const float place = static_cast<float>(place_of(r, s.coordinates, i));  // as ONNX Runtime computes it
    const double at = nearest_place(static_cast<double>(place), s.nearest);
    places.push_back(static_cast<int64_t>(std::clamp<double>(at, 0, static_cast<double>(r.from - 1))));
  }
  bool repeats = r.to == r.from * (r.to / std::max<int64_t>(r.from, 1));
  for (int64_t i = 0; repeats && i < r.to; ++i) repeats = places[static_cast<size_t>(i)] == i / (r.to / r.from);
  if (!repeats) return index_select(x, r.axis, c.made(places, {r.to}));
  Shape wide, flat;
  for (int d = 0; d < x.rank(); ++d) {
    wide.push_back(x.size(d));
    if (d == r.axis) wide.push_back(r.to / r.from);
    flat.push_back(d == r.axis ? r.to : x.size(d));
  }
  return reshape(expand(unsqueeze(x, r.axis + 1), wide), flat);
}

Tensor resized_by_weights(const Call& c, const Tensor& x, const Resized& r, const Sampling& s) {
  const DType dtype = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Tensor weights = c.made(resize_weights(r, s), {r.to, r.from}, dtype);
  const int last = x.rank() - 1;
  const Tensor in = transpose(cast(x, dtype), r.axis, last);
  return transpose(matmul(in, transpose(weights, 0, 1)), r.axis, last);
}

// Elements of the region beyond the input have the value of an attribute.
Tensor extrapolated(const Call& c, Tensor x, const std::vector<Resized>& all, const Sampling& s) {
  for (const Resized& r : all) {
    std::vector<int64_t> beyond;
    for (int64_t i = 0; i < r.to; ++i) {
      const double at = place_of(r, s.coordinates, i);
      beyond.push_back(at < 0 || at > static_cast<double>(r.from - 1));
    }
    x = where(ne(c.made(beyond, shape_along(x.rank(), r.axis, r.to)), 0), c.real("extrapolation_value", 0), x);
  }
  return x;
}

Value resized(Call& c) {
  const Sampling s = sampling_of(c);
  std::vector<Resized> all = resized_axes(c);
  keep_aspect(c, all);
  const bool crops = s.coordinates == "tf_crop_and_resize";
  if (crops) {
    const std::vector<double> roi = c.reals(1);
    for (size_t k = 0; k < all.size(); ++k) {
      all[k].begin = roi.at(k);
      all[k].end = roi.at(k + all.size());
    }
  }
  Tensor x = c.tensor(0);
  for (const Resized& r : all) {
    if (!r.from || r.to < 0 || !std::isfinite(r.scale) || r.scale <= 0 || !std::isfinite(r.begin) || !std::isfinite(r.end))
      throw Error(Code::invalid, "an axis is empty, or its new extent, its scale or its region is not valid");
    Call::countable(static_cast<double>(r.to) * (s.mode == "nearest" ? 1 : static_cast<double>(r.from)));
    if (r.from == r.to && r.scale == 1 && !crops) continue;
    x = s.mode == "nearest" ? resized_nearest(c, x, r, s) : resized_by_weights(c, x, r, s);
  }
  return c.like(crops ? extrapolated(c, x, all, s) : x);
}

Value grid_samples(Call& c) {
  const std::string mode = c.text("mode", "linear"), padding = c.text("padding_mode", "zeros");
  const Resampling by = mode == "nearest"                      ? Resampling::nearest
                        : mode == "cubic" || mode == "bicubic" ? Resampling::bicubic
                                                               : Resampling::bilinear;
  const GridPadding beyond = padding == "border"       ? GridPadding::border
                             : padding == "reflection" ? GridPadding::reflection
                                                       : GridPadding::zeros;
  return c.like(grid_sample(c.tensor(0), c.tensor(1), by, beyond, c.integer("align_corners", 0) != 0));
}

constexpr Operator kResizing[] = {
    {"Resize", resized},
    {"Upsample", resized},
    {"GridSample", grid_samples},
    {"AffineGrid",
     [](Call& c) { return c.like(affine_grid(c.tensor(0), Shape(c.integers(1)), c.integer("align_corners", 0) != 0)); }},
};
}  // namespace

std::span<const Operator> resizing_operators() { return kResizing; }

}  // namespace plugrad::io::onnx
