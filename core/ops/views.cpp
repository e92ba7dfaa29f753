#include <plugrad/ops/views.hpp>

#include <core/autograd/sum.hpp>
#include <core/ops/argument.hpp>
#include <core/ops/extent.hpp>
#include <core/ops/run.hpp>
#include <core/ops/slicing.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>

#include <algorithm>
#include <optional>
#include <utility>

namespace plugrad {
namespace {
constexpr auto kReshaped = gradient<kShape>([](const Tensor& grad, const Shape& shape) { return reshape(grad, shape); });

// A new view of x, with its layout derived.
Tensor viewed(const Tensor& x, plugrad_view v) {
  set_layout(v, device_of(x).info.alignment);
  return with_view(x, v);
}

// --- reshape

Shape resolved(const Tensor& x, Shape shape) {
  const auto unknown = std::ranges::find(shape, -1);
  if (unknown != shape.end()) {
    *unknown = 1;
    const int64_t known = shape.count();
    if (std::ranges::count(shape, -1) || !known || x.count() % known)
      refuse("reshape", "no extent for -1 gives the " + std::to_string(x.count()) + " elements of " + x.shape().text());
    *unknown = x.count() / known;
  }
  if (shape.count() != x.count())
    refuse("reshape", x.shape().text() + " has " + std::to_string(x.count()) + " elements, " + shape.text() + " has " +
                          std::to_string(shape.count()));
  return shape;
}

// Strides for a new shape over the same elements, or null if none exist. Axes contiguous with each other count as a single
// axis.
std::optional<Shape> reshaped_strides(const plugrad_view& v, const Shape& shape) {
  Shape strides = shape;
  int from = v.rank - 1;
  int to = shape.rank() - 1;
  while (to >= 0) {
    while (from >= 0 && v.shape[from] == 1) --from;
    if (shape[static_cast<size_t>(to)] == 1) {
      strides[static_cast<size_t>(to--)] = 1;
      continue;
    }
    if (from < 0) return std::nullopt;
    int64_t block = v.shape[from];
    const int64_t base = v.strides[from];
    while (from > 0 && (v.shape[from - 1] == 1 || v.strides[from - 1] == base * block)) block *= v.shape[--from];
    --from;
    for (int64_t filled = 1; filled < block;) {
      if (to < 0 || block % (filled * shape[static_cast<size_t>(to)]) != 0) return std::nullopt;
      strides[static_cast<size_t>(to)] = base * filled;
      filled *= shape[static_cast<size_t>(to--)];
    }
  }
  return strides;
}
}  // namespace

Tensor reshape(const Tensor& x, const Shape& wanted) {
  static constexpr auto kRule = rule("reshape", kReshaped);
  require_defined(x, "reshape");
  const Shape shape = resolved(x, wanted);
  plugrad_view v = view_of(x);
  Tensor source = x;
  std::optional<Shape> strides = v.count ? reshaped_strides(v, shape) : shape;
  if (!strides) {
    source = dense(ungraphed(x));
    v = view_of(source);
    strides = reshaped_strides(v, shape);
  }
  v.rank = static_cast<uint8_t>(shape.rank());
  std::ranges::copy(shape, v.shape);
  std::ranges::copy(*strides, v.strides);
  return differentiable(kRule, viewed(source, v), x);
}

// --- Order of axes.

Tensor permute(const Tensor& x, const Shape& axes) {
  static constexpr auto kRule = rule("permute", gradient<kPayload>([](const Tensor& grad, const Shape& order) {
                                       Shape inverse = order;
                                       for (int i = 0; i < order.rank(); ++i)
                                         inverse[static_cast<size_t>(order[static_cast<size_t>(i)])] = i;
                                       return permute(grad, inverse);
                                     }));
  require_defined(x, "permute");
  plugrad_view v = view_of(x);
  Shape order = axes;
  unsigned seen = 0;
  if (axes.rank() != v.rank)
    refuse("permute", std::to_string(axes.rank()) + " axes for a tensor of shape " + x.shape().text());
  for (int i = 0; i < v.rank; ++i) {
    const int from = normal_axis(axes[static_cast<size_t>(i)], v.rank, "permute");
    if (seen >> from & 1) refuse("permute", "axis " + std::to_string(from) + " appears twice in " + axes.text());
    seen |= 1u << from;
    order[static_cast<size_t>(i)] = from;
    v.shape[i] = view_of(x).shape[from];
    v.strides[i] = view_of(x).strides[from];
  }
  return differentiable(kRule, order, viewed(x, v), x);
}

Tensor transpose(const Tensor& x, int axis0, int axis1) {
  using Axes = std::pair<int, int>;
  static constexpr auto kRule = rule("transpose", gradient<kPayload>([](const Tensor& grad, const Axes& swapped) {
                                       return transpose(grad, swapped.first, swapped.second);
                                     }));
  require_defined(x, "transpose");
  plugrad_view v = view_of(x);
  const int rank = std::max<int>(v.rank, 1);
  const int i = normal_axis(axis0, rank, "transpose"), j = normal_axis(axis1, rank, "transpose");
  if (!v.rank) return x;
  std::swap(v.shape[i], v.shape[j]);
  std::swap(v.strides[i], v.strides[j]);
  return differentiable(kRule, Axes(i, j), viewed(x, v), x);
}

// --- Parts.

namespace {
// The elements of Python's slice(start, end, step).indices(extent) along this axis.
Part python_range(int axis, int64_t extent, int64_t start, int64_t end, int64_t step) {
  const int64_t low = step < 0 ? -1 : 0, high = step < 0 ? extent - 1 : extent;
  const auto inside = [&](int64_t i) { return std::clamp(i < 0 ? i + extent : i, low, high); };
  start = inside(start);
  end = inside(end);
  const int64_t distance = step < 0 ? start - end : end - start;
  const uint64_t by = step < 0 ? 0 - static_cast<uint64_t>(step) : static_cast<uint64_t>(step);
  const int64_t count = distance > 0 ? static_cast<int64_t>(static_cast<uint64_t>(distance - 1) / by) + 1 : 0;
  return {axis, start, count, count > 1 ? step : 1};  // an unused step may be huge and overflow strides
}
}  // namespace

Tensor slice(const Tensor& x, int axis, int64_t start, int64_t end, int64_t step) {
  require_defined(x, "slice");
  if (step == 0) refuse("slice", "step 0 never reaches the end");
  const int at = normal_axis(axis, x.rank(), "slice");
  return strided_part(x, python_range(at, view_of(x).shape[at], start, end, step));
}

Tensor select(const Tensor& x, int axis, int64_t index) {
  require_defined(x, "select");
  const int at = normal_axis(axis, x.rank(), "select");
  const int64_t extent = view_of(x).shape[at];
  if (index < -extent || index >= extent)
    throw Error(Code::index_error, "[select] index " + std::to_string(index) + " is out of range for axis " +
                                       std::to_string(at) + " of extent " + std::to_string(extent));
  return squeeze(strided_part(x, {at, index < 0 ? index + extent : index, 1, 1}), {at});
}

// --- Extents of 1.

Tensor expand(const Tensor& x, const Shape& wanted) {
  require_defined(x, "expand");
  Shape shape = wanted;
  const int added = wanted.rank() - x.rank();
  bool fits = added >= 0;
  for (int i = 0; fits && i < wanted.rank(); ++i) {
    const int64_t own = i < added ? 1 : view_of(x).shape[i - added];
    if (shape[static_cast<size_t>(i)] == -1 && i >= added) shape[static_cast<size_t>(i)] = own;
    fits = shape[static_cast<size_t>(i)] >= 0 && (own == 1 || own == shape[static_cast<size_t>(i)]);
  }
  if (!fits) refuse("expand", x.shape().text() + " does not expand to " + wanted.text());
  return shape == x.shape() ? x : expand_to(x, shape);
}

namespace {
Tensor with_axes(const Tensor& x, const Shape& shape, const Shape& strides) {
  static constexpr auto kRule = rule("reshape", kReshaped);
  plugrad_view v = view_of(x);
  v.rank = static_cast<uint8_t>(shape.rank());
  std::ranges::copy(shape, v.shape);
  std::ranges::copy(strides, v.strides);
  return differentiable(kRule, viewed(x, v), x);
}
}  // namespace

Tensor squeeze(const Tensor& x, const Shape& axes) {
  require_defined(x, "squeeze");
  const plugrad_view& v = view_of(x);
  unsigned dropped = 0;
  for (int64_t axis : axes) {
    const int at = normal_axis(axis, std::max<int>(v.rank, 1), "squeeze");
    if (at < v.rank && v.shape[at] == 1) dropped |= 1u << at;
  }
  if (!axes.empty() && !dropped) return x;
  Shape shape, strides;
  for (int i = 0; i < v.rank; ++i) {
    if (axes.empty() ? v.shape[i] == 1 : dropped >> i & 1) continue;
    shape.push_back(v.shape[i]);
    strides.push_back(v.strides[i]);
  }
  return with_axes(x, shape, strides);
}

Tensor unsqueeze(const Tensor& x, int axis) {
  require_defined(x, "unsqueeze");
  const plugrad_view& v = view_of(x);
  const int at = normal_axis(axis, v.rank + 1, "unsqueeze");
  Shape shape, strides;
  for (int i = 0; i <= v.rank; ++i) {
    if (i == at) shape.push_back(1), strides.push_back(1);
    if (i < v.rank) shape.push_back(v.shape[i]), strides.push_back(v.strides[i]);
  }
  return with_axes(x, shape, strides);
}

Tensor flatten(const Tensor& x, int start_axis, int end_axis) {
  require_defined(x, "flatten");
  const int rank = std::max(x.rank(), 1);
  const int first = normal_axis(start_axis, rank, "flatten"), last = normal_axis(end_axis, rank, "flatten");
  if (first > last)
    refuse("flatten",
           "axis " + std::to_string(first) + " is behind axis " + std::to_string(last) + ": give the first one first");
  if (first == last && x.rank()) return x;
  Shape shape;
  Extent merged = 1;
  for (int i = 0; i < x.rank(); ++i) {
    if (i >= first && i <= last) merged *= x.size(i);
    else shape.push_back(x.size(i));
    if (i == last) shape.push_back(merged);
  }
  return reshape(x, x.rank() ? shape : Shape{1});
}
Tensor ravel(const Tensor& x) { return contiguous(flatten(x)); }

Tensor unflatten(const Tensor& x, int axis, const Shape& sizes) {
  require_defined(x, "unflatten");
  const int at = normal_axis(axis, x.rank(), "unflatten");
  const auto unknown = std::ranges::find(sizes, -1);
  Shape known = sizes, shape;
  if (unknown != sizes.end()) known[static_cast<size_t>(unknown - sizes.begin())] = 1;
  const bool fits = unknown == sizes.end() ? known.count() == x.size(at) : known.count() && x.size(at) % known.count() == 0;
  if (sizes.empty() || !fits)
    refuse("unflatten", "sizes " + sizes.text() + " do not give axis " + std::to_string(at) + " of " + x.shape().text() +
                            ": their product must be its extent");
  if (unknown != sizes.end()) known[static_cast<size_t>(unknown - sizes.begin())] = x.size(at) / known.count();
  for (int i = 0; i < x.rank(); ++i) {
    if (i != at) shape.push_back(x.size(i));
    else
      for (const int64_t each : known) shape.push_back(each);
  }
  return reshape(x, shape);
}

Tensor reshape_as(const Tensor& x, const Tensor& other) {
  require_defined(other, "reshape_as");
  return reshape(x, other.shape());
}
Tensor view_as(const Tensor& x, const Tensor& other) {
  require_defined(other, "view_as");
  return reshape(x, other.shape());
}
Tensor expand_as(const Tensor& x, const Tensor& other) {
  require_defined(other, "expand_as");
  return expand(x, other.shape());
}

Tensor contiguous(const Tensor& x) {
  require_defined(x, "contiguous");
  return x.is_contiguous() ? x : clone(x);
}

// --- Joining.

namespace {
// All tensors in their common dtype.
std::vector<Tensor> of_one_dtype(const std::vector<Tensor>& tensors) {
  DType common = tensors.front().dtype();
  for (const Tensor& each : tensors) common = promote_types(common, each.dtype());
  std::vector<Tensor> converted;
  for (const Tensor& each : tensors) converted.push_back(cast(each, common));
  return converted;
}

void require_alike(const Tensor& first, const Tensor& other, int axis) {
  require_together("cat", first, other);
  bool fits = first.rank() == other.rank();
  for (int i = 0; fits && i < first.rank(); ++i) fits = i == axis || view_of(first).shape[i] == view_of(other).shape[i];
  if (!fits)
    refuse("cat", "shapes " + first.shape().text() + " and " + other.shape().text() + " may differ only along axis " +
                      std::to_string(axis));
}

// As in PyTorch, tensors of shape (0) fit beside all tensors.
std::vector<Tensor> without_placeholders(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> kept;
  for (const Tensor& each : tensors)
    if (each.rank() != 1 || each.count()) kept.push_back(each);
  return kept;
}

// The start of each operand of cat in the result.
struct Seams {
  int axis;
  std::vector<int64_t> starts;  // and the end
};
}  // namespace

Tensor cat(const std::vector<Tensor>& tensors, int axis) {
  static constexpr auto kRule =
      rule_of_many("cat", gradient<kPosition, kPayload>([](const Tensor& grad, size_t i, const Seams& seams) {
                     return strided_part(grad, {seams.axis, seams.starts[i], seams.starts[i + 1] - seams.starts[i], 1});
                   }));
  if (tensors.empty()) refuse("cat", "no tensors were given, expected at least one");
  for (const Tensor& each : tensors) require_defined(each, "cat");
  const Tensor& first = tensors.front();
  if (std::ranges::any_of(tensors, [&](const Tensor& each) { return each.dtype() != first.dtype(); }))
    return cat(of_one_dtype(tensors), axis);
  if (const auto kept = without_placeholders(tensors); !kept.empty() && kept.size() < tensors.size()) return cat(kept, axis);
  const int at = normal_axis(axis, first.rank(), "cat");
  Seams seams{at, {0}};
  for (const Tensor& each : tensors) {
    require_alike(first, each, at);
    int64_t end = 0;
    if (__builtin_add_overflow(seams.starts.back(), each.size(at), &end))
      refuse("cat", "the result would have more than 2^63 - 1 elements along axis " + std::to_string(at));
    seams.starts.push_back(end);
  }
  Shape shape = first.shape();
  shape[static_cast<size_t>(at)] = seams.starts.back();
  DeviceState& device = device_of(first);
  Tensor out = empty(Op::COPY, device, shape, dtype_of(first));
  for (size_t i = 0; i < tensors.size(); ++i) {
    plugrad_view part = sliced(view_of(out), {at, seams.starts[i], tensors[i].size(at), 1});
    set_layout(part, device.info.alignment);
    if (part.count) run(Op::COPY, {operand(out, part)}, {tensors[i]});
  }
  record_many(kRule, out, tensors, std::move(seams));
  return out;
}

Tensor stack(const std::vector<Tensor>& tensors, int axis) {
  if (tensors.empty()) refuse("stack", "no tensors were given, expected at least one");
  std::vector<Tensor> rows;
  for (const Tensor& each : tensors) {
    require_defined(each, "stack");
    if (each.shape() != tensors.front().shape())
      refuse("stack", "shapes " + tensors.front().shape().text() + " and " + each.shape().text() + " differ");
    if (&device_of(each) != &device_of(tensors.front())) throw_not_together("stack", tensors.front(), each);
    rows.push_back(unsqueeze(each, axis));
  }
  return cat(rows, normal_axis(axis, rows.front().rank(), "stack"));
}

Shape broadcast_shapes(const Shape& a, const Shape& b) {
  return shape_of(
      common_shape(Op::COPY, dense_view(a, PLUGRAD_F32, 1), dense_view(b, PLUGRAD_F32, 1), 1, "broadcast_shapes"));
}

}  // namespace plugrad
