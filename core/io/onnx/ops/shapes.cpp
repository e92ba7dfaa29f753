#include <core/io/onnx/ops/shape_parts.hpp>
#include <core/io/onnx/ops/tables.hpp>
#include <plugrad/ops/arrangement.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/error.hpp>

#include <algorithm>
#include <numeric>
#include <set>

namespace plugrad::io::onnx {
namespace {

Value shape_value(Call& c) {
  const Shape shape = c.shape(0);
  const int64_t rank = shape.rank();
  const auto place = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const int64_t begin = place(c.integer("start", 0)), end = std::max(begin, place(c.integer("end", rank)));
  const std::vector<int64_t> part(shape.begin() + begin, shape.begin() + end);
  return Tensor::from<int64_t>(part, {end - begin}, c.device());
}

Value size_value(Call& c) { return Tensor::from<int64_t>({c.tensor(0).count()}, {}, c.device()); }

Value reshaped(Call& c) {
  std::vector<int64_t> shape = c.has(1) ? c.integers(1) : c.integers("shape");
  if (!c.integer("allowzero", 0))
    for (size_t k = 0; k < shape.size(); ++k)
      if (!shape[k]) shape[k] = c.tensor(0).size(static_cast<int>(k));
  return c.like(reshape(c.tensor(0), shape));
}

Value transposed(Call& c) {
  std::vector<int64_t> order = c.integers("perm");
  if (order.empty())
    for (int d = c.rank(0); d-- > 0;) order.push_back(d);
  return c.like(permute(c.tensor(0), order));
}

Value flattened(Call& c) {
  int64_t first = c.integer("axis", 1);
  if (first < 0) first += c.rank(0);
  return c.like(reshape(c.tensor(0), matrix_shape(c.shape(0), first)));
}

std::vector<int64_t> listed_axes(const Call& c) { return c.has(1) ? c.integers(1) : c.integers("axes"); }

Value squeezed(Call& c) {
  const Shape shape = c.shape(0);
  std::set<int> removed;
  for (const int64_t each : listed_axes(c)) removed.insert(Call::axis(each, shape.rank()));
  const bool all = !c.has(1) && !c.has_attribute("axes");
  std::vector<int64_t> kept;
  for (int d = 0; d < shape.rank(); ++d) {
    const int64_t extent = shape[static_cast<size_t>(d)];
    if (removed.contains(d) && extent != 1) throw Error(Code::invalid, "axis " + std::to_string(d) + " is not of extent 1");
    if (!removed.contains(d) && !(all && extent == 1)) kept.push_back(extent);
  }
  return c.like(reshape(c.tensor(0), kept));
}

Value unsqueezed(Call& c) {
  const Shape shape = c.shape(0);
  const std::vector<int64_t> axes = listed_axes(c);
  const int rank = shape.rank() + static_cast<int>(axes.size());
  std::set<int> added;
  for (const int64_t each : axes) added.insert(Call::axis(each, rank));
  if (added.size() != axes.size()) throw Error(Code::invalid, "an axis is repeated");
  std::vector<int64_t> extents;
  size_t next = 0;
  for (int d = 0; d < rank; ++d) extents.push_back(added.contains(d) ? 1 : shape[next++]);
  return c.like(reshape(c.tensor(0), extents));
}

Value expanded(Call& c) { return c.like(expand(c.tensor(0), broadcast_shapes(c.shape(0), Shape(c.integers(1))))); }

// x[begin : end : step] along one axis, with NumPy's rules for places beyond the ends.
Tensor sliced(const Tensor& x, int axis, int64_t begin, int64_t end, int64_t step) {
  const int64_t extent = x.size(axis);
  if (!step) throw Error(Code::invalid, "a step is 0");
  if (begin < 0) begin = std::max<int64_t>(begin + extent, 0);  // also for negative steps, unlike NumPy
  end = end < 0 ? std::max<int64_t>(end + extent, -1) : end;
  if (step > 0) {
    begin = std::min(begin, extent);
    end = std::clamp<int64_t>(end, begin, std::max(begin, extent));
    return begin == 0 && end == extent && step == 1
               ? x
               : slice(x, axis, begin, end, std::min(step, std::max(extent, int64_t{1})));
  }
  begin = extent - 1 - std::min(begin, extent - 1);
  end = std::max(begin, extent - 1 - std::min(end, extent - 1));
  return slice(flip(x, {axis}), axis, begin, end, step < -extent ? std::max(extent, int64_t{1}) : -step);
}

Value slices(Call& c) {
  const bool old = c.inputs() < 3;
  const std::vector<int64_t> begins = old ? c.integers("starts") : c.integers(1);
  const std::vector<int64_t> ends = old ? c.integers("ends") : c.integers(2);
  std::vector<int64_t> axes = c.has(3) ? c.integers(3) : c.integers("axes");
  const std::vector<int64_t> steps = c.has(4) ? c.integers(4) : std::vector<int64_t>(begins.size(), 1);
  if (axes.empty()) {
    axes.resize(begins.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  Tensor x = c.tensor(0);
  for (size_t k = 0; k < begins.size(); ++k)
    x = sliced(x, Call::axis(axes.at(k), x.rank()), begins[k], ends.at(k), steps.at(k));
  return c.like(x);
}

Values splits(Call& c) {
  const Tensor& x = c.tensor(0);
  const int axis = Call::axis(c.integer("axis", 0), x.rank());
  std::vector<int64_t> sizes = c.has(1) ? c.integers(1) : c.integers("split");
  if (sizes.empty()) {
    const int64_t parts = c.integer("num_outputs", static_cast<int64_t>(c.outputs())), extent = x.size(axis);
    if (parts < 1 || parts != static_cast<int64_t>(c.outputs()))
      throw Error(Code::invalid, "num_outputs is " + std::to_string(parts) + ", and the node has " +
                                     std::to_string(c.outputs()) + " outputs");
    const int64_t part = (extent + parts - 1) / parts;
    for (int64_t k = 0; k < parts; ++k) sizes.push_back(std::clamp<int64_t>(extent - k * part, 0, part));
  }
  Values all;
  int64_t begin = 0;
  for (const int64_t size : sizes) {
    if (size < 0 || size > x.size(axis) - begin) throw Error(Code::invalid, "the parts do not fit the axis");
    all.push_back(c.like(slice(x, axis, begin, begin + size)));
    begin += size;
  }
  return all;
}

Value concatenated(Call& c) {
  std::vector<Tensor> parts;
  for (size_t i = 0; i < c.inputs(); ++i) parts.push_back(c.tensor(i));
  return c.like(cat(parts, Call::axis(c.integer("axis", 0), c.rank(0))));
}

Value tiled(Call& c) {
  if (c.opset() >= 6) return c.like(repeat(c.tensor(0), Shape(c.integers(1))));
  const int axis = Call::axis(c.integer(2), c.rank(0));
  return c.like(repeat(c.tensor(0), shape_along(c.rank(0), axis, c.integer(1))));
}

void require_image(const Call& c) {
  if (c.rank(0) != 4) throw Error(Code::invalid, "x (batch, channels, height, width) is expected");
}

// Depth to space and back, by blocks of `size` pixels along both axes.
Value depth_to_space(Call& c) {
  const Shape s = c.shape(0);
  require_image(c);
  const int64_t size = c.positive_attribute("blocksize", 1), depth = s[1] / size / size;
  const bool depth_first = c.text("mode", "DCR") == "DCR";
  const Tensor parts = depth_first
                           ? permute(reshape(c.tensor(0), {s[0], size, size, depth, s[2], s[3]}), {0, 3, 4, 1, 5, 2})
                           : permute(reshape(c.tensor(0), {s[0], depth, size, size, s[2], s[3]}), {0, 1, 4, 2, 5, 3});
  return c.like(reshape(parts, {s[0], depth, s[2] * size, s[3] * size}));
}

Value space_to_depth(Call& c) {
  const Shape s = c.shape(0);
  require_image(c);
  const int64_t size = c.positive_attribute("blocksize", 1);
  const Tensor parts = reshape(c.tensor(0), {s[0], s[1], s[2] / size, size, s[3] / size, size});
  const Shape order = c.text("mode", "DCR") == "CRD" ? Shape{0, 1, 3, 5, 2, 4} : Shape{0, 3, 5, 1, 2, 4};
  return c.like(reshape(permute(parts, order), {s[0], s[1] * size * size, s[2] / size, s[3] / size}));
}

constexpr Operator kShapes[] = {
    {"Identity", [](Call& c) { return c.value(0); }, Operator::Kind::whole},
    {"Shape", shape_value, Operator::Kind::shape},
    {"Size", size_value, Operator::Kind::shape},
    {"Reshape", reshaped},
    {"Transpose", transposed},
    {"Flatten", flattened},
    {"Squeeze", squeezed},
    {"Unsqueeze", unsqueezed},
    {"Expand", expanded},
    {"Slice", slices},
    {"Split", splits},
    {"Concat", concatenated},
    {"Tile", tiled},
    {"DepthToSpace", depth_to_space},
    {"SpaceToDepth", space_to_depth},
};
}  // namespace

std::span<const Operator> shape_operators() { return kShapes; }

}  // namespace plugrad::io::onnx
