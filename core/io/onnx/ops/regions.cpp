#include <core/io/onnx/ops/tables.hpp>
#include <plugrad/ops/activations.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/logic.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/selection.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/error.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

namespace plugrad::io::onnx {
namespace {

struct Box {
  double top, left, bottom, right;
  double area() const { return (bottom - top) * (right - left); }
};

Box box_of(const double* b, bool center) {
  if (center) return {b[1] - b[3] / 2, b[0] - b[2] / 2, b[1] + b[3] / 2, b[0] + b[2] / 2};
  return {std::min(b[0], b[2]), std::min(b[1], b[3]), std::max(b[0], b[2]), std::max(b[1], b[3])};
}

double overlap(const Box& a, const Box& b) {
  const double height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  const double width = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (height <= 0 || width <= 0) return 0;
  return height * width / (a.area() + b.area() - height * width);
}

// The boxes to keep, best first: none overlaps a better one by more than `most`.
std::vector<int64_t> kept_boxes(const std::vector<Box>& boxes, const double* scores, int64_t count, double most,
                                const double* least) {
  std::vector<size_t> order(boxes.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  std::vector<int64_t> kept;
  for (const size_t i : order) {
    if (static_cast<int64_t>(kept.size()) >= count || (least && scores[i] <= *least)) break;
    const auto overlaps = [&](int64_t k) { return overlap(boxes[i], boxes[static_cast<size_t>(k)]) > most; };
    if (std::ranges::none_of(kept, overlaps)) kept.push_back(static_cast<int64_t>(i));
  }
  return kept;
}

Value non_max_suppression(Call& c) {
  if (!c.known(0) || !c.known(1)) c.note_read();
  const Shape boxes_shape = c.shape(0), scores_shape = c.shape(1);
  if (boxes_shape.rank() != 3 || scores_shape.rank() != 3 || boxes_shape[2] != 4 || boxes_shape[0] != scores_shape[0] ||
      boxes_shape[1] != scores_shape[2])
    throw Error(Code::invalid, "boxes (batch, n, 4) and scores (batch, classes, n) are expected");
  const std::vector<double> boxes = c.reals(0), scores = c.reals(1);
  const int64_t batches = boxes_shape[0], n = boxes_shape[1], classes = scores_shape[1];
  const int64_t count = c.has(2) ? c.integer(2) : 0;
  const double most = c.has(3) ? c.real(size_t{3}) : 0;
  const double least = c.has(4) ? c.real(size_t{4}) : 0;
  std::vector<int64_t> all;
  for (int64_t batch = 0; batch < batches; ++batch) {
    std::vector<Box> own;
    for (int64_t i = 0; i < n; ++i)
      own.push_back(box_of(boxes.data() + (batch * n + i) * 4, c.integer("center_point_box", 0)));
    for (int64_t k = 0; k < classes; ++k)
      for (const int64_t i :
           kept_boxes(own, scores.data() + (batch * classes + k) * n, count, most, c.has(4) ? &least : nullptr))
        for (const int64_t number : {batch, k, i}) all.push_back(number);
  }
  return Tensor::from<int64_t>(all, {static_cast<int64_t>(all.size() / 3), 3}, c.device());
}

// The weights (regions, places, size) with which `size` pixels make each place: linear interpolation, 0 beyond the image.
Tensor place_weights(const Call& c, const Tensor& places, int64_t size) {
  const Tensor inside = logical_and(ge(places, -1), le(places, size));
  const Tensor distance = abs(sub(unsqueeze(clamp(places, 0, size - 1), 2), cast(c.arange(size), places.dtype())));
  return mul(clamp_min(sub(1, distance), 0), unsqueeze(cast(inside, places.dtype()), 2));
}

Value aligned_regions(Call& c) {
  const Tensor& x = c.tensor(0);
  const int64_t height = c.positive_attribute("output_height", 1), width = c.positive_attribute("output_width", 1);
  const int64_t ratio = c.integer("sampling_ratio", 0), count = c.tensor(1).size(0);
  if (ratio < 1) throw Error(Code::unsupported, "a sampling_ratio of 0, which depends on each region, is not supported");
  const std::string mode = c.text("coordinate_transformation_mode", c.opset() >= 16 ? "half_pixel" : "output_half_pixel");
  const bool half = mode == "half_pixel";
  const Tensor regions = sub(mul(c.tensor(1), c.real("spatial_scale", 1)), half ? 0.5 : 0.0);
  const auto weights = [&](int first, int64_t bins, int64_t size) {
    std::vector<double> steps;
    Call::countable(static_cast<double>(bins) * static_cast<double>(ratio));
    for (int64_t i = 0; i < bins * ratio; ++i)
      steps.push_back(
          (static_cast<double>(i / ratio) + (static_cast<double>(i % ratio) + 0.5) / static_cast<double>(ratio)) /
          static_cast<double>(bins));
    const Tensor begin = slice(regions, 1, first, first + 1), end = slice(regions, 1, first + 2, first + 3);
    const Tensor extent = half ? sub(end, begin) : maximum(sub(end, begin), 1);
    return place_weights(c, add(begin, mul(extent, c.made(steps, {1, bins * ratio}, x.dtype()))), size);
  };
  const Tensor image = index_select(x, 0, c.tensor(2));  // (regions, channels, height, width)
  const Tensor rows = unsqueeze(weights(1, height, x.size(2)), 1), columns = unsqueeze(weights(0, width, x.size(3)), 1);
  const Shape bins{count, x.size(1), height, ratio, width, ratio};
  if (c.text("mode", "avg") == "max") throw Error(Code::unsupported, "the mode 'max' is not supported");
  return c.like(mean(reshape(matmul(matmul(rows, image), transpose(columns)), bins), {3, 5}));
}

constexpr Operator kRegions[] = {{"NonMaxSuppression", non_max_suppression}, {"RoiAlign", aligned_regions}};
}  // namespace

std::span<const Operator> region_operators() { return kRegions; }

}  // namespace plugrad::io::onnx
