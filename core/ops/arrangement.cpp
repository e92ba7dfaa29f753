#include <plugrad/ops/arrangement.hpp>

#include <core/ops/argument.hpp>
#include <core/ops/run.hpp>
#include <core/ops/slicing.hpp>
#include <core/ops/window.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/indexing.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/scans.hpp>
#include <plugrad/ops/views.hpp>

#include <algorithm>

namespace plugrad {

// --- Parts.

namespace {
// The number of parts requested by a caller. Throws Error (invalid) for more parts than a list can sensibly hold.
size_t parts_of(const char* name, int64_t count) {
  constexpr int64_t kMost = 1 << 24;
  if (count > kMost)
    refuse(name, std::to_string(count) + " parts: expected " + std::to_string(kMost) + " at most, for each is a tensor");
  return static_cast<size_t>(count);
}
}  // namespace

std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& split_size, int axis) {
  require_defined(x, "split");
  const int at = normal_axis(axis, x.rank(), "split");
  Extent total = 0;
  for (const int64_t size : split_size) {
    if (size < 0) refuse("split", "a part of " + std::to_string(size) + " elements: give none below 0");
    total += size;
  }
  if (total != x.size(at))
    refuse("split", "the parts have " + std::to_string(total) + " elements, but axis " + std::to_string(at) + " of " +
                        x.shape().text() + " has " + std::to_string(x.size(at)) + ": they must be equal");
  std::vector<Tensor> parts;
  int64_t start = 0;
  for (const int64_t size : split_size) {
    parts.push_back(strided_part(x, {at, start, size, 1}));
    start += size;
  }
  return parts;
}

std::vector<Tensor> split(const Tensor& x, int64_t split_size, int axis) {
  require_defined(x, "split");
  const int64_t extent = x.size(normal_axis(axis, x.rank(), "split"));
  if (split_size < 1) refuse("split", "parts of " + std::to_string(split_size) + " elements: expected 1 or more");
  std::vector<int64_t> sizes;
  for (int64_t start = 0; start < extent || sizes.empty(); start += split_size)
    sizes.push_back(std::min(split_size, extent - start));
  return split(x, sizes, axis);
}

std::vector<Tensor> chunk(const Tensor& x, int64_t chunks, int axis) {
  require_defined(x, "chunk");
  if (chunks < 1) refuse("chunk", std::to_string(chunks) + " chunks: expected 1 or more");
  const int64_t extent = x.size(normal_axis(axis, x.rank(), "chunk"));
  if (!extent) return split(x, std::vector<int64_t>(parts_of("chunk", chunks), 0), axis);
  return split(x, (extent - 1) / chunks + 1, axis);
}

std::vector<Tensor> tensor_split(const Tensor& x, const std::vector<int64_t>& indices, int axis) {
  require_defined(x, "tensor_split");
  const int at = normal_axis(axis, x.rank(), "tensor_split");
  std::vector<Tensor> parts;
  for (size_t i = 0; i <= indices.size(); ++i)
    parts.push_back(slice(x, at, i ? indices[i - 1] : 0, i < indices.size() ? indices[i] : x.size(at)));
  return parts;
}

std::vector<Tensor> tensor_split(const Tensor& x, int64_t sections, int axis) {
  require_defined(x, "tensor_split");
  const int64_t extent = x.size(normal_axis(axis, x.rank(), "tensor_split"));
  if (sections < 1) refuse("tensor_split", std::to_string(sections) + " sections: expected 1 or more");
  std::vector<int64_t> sizes(parts_of("tensor_split", sections), extent / sections);
  for (int64_t i = 0; i < extent % sections; ++i) ++sizes[static_cast<size_t>(i)];
  return split(x, sizes, axis);
}

namespace {
// The axis for hsplit, vsplit and dsplit, of a tensor of at least this rank.
int split_axis(const char* name, const Tensor& x, int rank, int axis) {
  require_defined(x, name);
  if (x.rank() < rank)
    refuse(name, "x has shape " + x.shape().text() + ": expected rank " + std::to_string(rank) + " or more");
  return x.rank() > axis ? axis : 0;
}

std::vector<Tensor> equal_sections(const char* name, const Tensor& x, int64_t sections, int axis) {
  if (sections < 1 || x.size(axis) % sections)
    refuse(name, std::to_string(sections) + " sections of axis " + std::to_string(axis) + " of " + x.shape().text() +
                     ": expected a number that divides its extent");
  return tensor_split(x, sections, axis);
}
}  // namespace

std::vector<Tensor> hsplit(const Tensor& x, int64_t sections) {
  const int axis = split_axis("hsplit", x, 1, 1);
  return equal_sections("hsplit", x, sections, axis);
}
std::vector<Tensor> hsplit(const Tensor& x, const std::vector<int64_t>& indices) {
  return tensor_split(x, indices, split_axis("hsplit", x, 1, 1));
}
std::vector<Tensor> vsplit(const Tensor& x, int64_t sections) {
  const int axis = split_axis("vsplit", x, 2, 0);
  return equal_sections("vsplit", x, sections, axis);
}
std::vector<Tensor> vsplit(const Tensor& x, const std::vector<int64_t>& indices) {
  return tensor_split(x, indices, split_axis("vsplit", x, 2, 0));
}
std::vector<Tensor> dsplit(const Tensor& x, int64_t sections) {
  const int axis = split_axis("dsplit", x, 3, 2);
  return equal_sections("dsplit", x, sections, axis);
}
std::vector<Tensor> dsplit(const Tensor& x, const std::vector<int64_t>& indices) {
  return tensor_split(x, indices, split_axis("dsplit", x, 3, 2));
}

// --- Order.

Tensor flip(const Tensor& x, const Shape& axes) {
  require_defined(x, "flip");
  Tensor out = x;
  if (!axes.empty())
    for (const int64_t axis : normal_axes(axes, x.rank(), "flip")) {
      const int at = static_cast<int>(axis);
      if (x.size(at)) out = strided_part(out, {at, x.size(at) - 1, x.size(at), -1});
    }
  return out;
}

Tensor fliplr(const Tensor& x) {
  require_defined(x, "fliplr");
  if (x.rank() < 2) refuse("fliplr", "x has shape " + x.shape().text() + ": expected two axes or more");
  return flip(x, {1});
}
Tensor flipud(const Tensor& x) {
  require_defined(x, "flipud");
  if (!x.rank()) refuse("flipud", "x has rank 0: expected an axis or more");
  return flip(x, {0});
}

Tensor rot90(const Tensor& x, int64_t k, const Shape& axes) {
  require_defined(x, "rot90");
  if (axes.rank() != 2) refuse("rot90", "axes are " + axes.text() + ": expected two");
  const Shape plane = normal_axes(axes, x.rank(), "rot90");
  const int64_t turns = (k % 4 + 4) % 4;
  if (turns % 2 == 0) return turns ? flip(x, plane) : x;
  return transpose(flip(x, {plane[turns == 1 ? 1 : 0]}), static_cast<int>(plane[0]), static_cast<int>(plane[1]));
}

namespace {
Tensor rolled(const Tensor& x, int axis, int64_t shift) {
  const int64_t extent = x.size(axis), first = extent ? (extent - shift % extent) % extent : 0;
  if (!first) return x;
  return cat({strided_part(x, {axis, first, extent - first, 1}), strided_part(x, {axis, 0, first, 1})}, axis);
}
}  // namespace

Tensor roll(const Tensor& x, const Shape& shifts, const Shape& axes) {
  require_defined(x, "roll");
  if (axes.empty() && shifts.rank() == 1) return reshape(rolled(reshape(x, {x.count()}), 0, shifts[0]), x.shape());
  if (axes.rank() != shifts.rank())
    refuse("roll",
           std::to_string(shifts.rank()) + " shifts for " + std::to_string(axes.rank()) + " axes: give one for each axis");
  Tensor out = x;
  for (size_t i = 0; i < axes.size(); ++i) out = rolled(out, normal_axis(axes[i], x.rank(), "roll"), shifts[i]);
  return out;
}

Tensor movedim(const Tensor& x, const Shape& source, const Shape& destination) {
  require_defined(x, "movedim");
  if (source.rank() != destination.rank())
    refuse("movedim",
           "source is " + source.text() + " and destination " + destination.text() + ": give a destination for each source");
  if (source.empty()) return x;
  const Shape from = normal_axes(source, x.rank(), "movedim"), to = normal_axes(destination, x.rank(), "movedim");
  Shape order;
  for (int i = 0, next = 0; i < x.rank(); ++i) {
    const auto at = std::ranges::find(to, i);
    while (at == to.end() && std::ranges::find(from, next) != from.end()) ++next;
    order.push_back(at == to.end() ? next++ : from[static_cast<size_t>(at - to.begin())]);
  }
  return permute(x, order);
}

// --- Repetition.

namespace {
int64_t extents(const Shape& shape, int from, int to) {
  Extent count = 1;
  for (int i = from; i < to; ++i) count *= shape[static_cast<size_t>(i)];
  return count;
}

// x with an axis repeated: each block of axes from `inner` on follows itself.
Tensor repeated(const Tensor& x, int axis, int inner, int64_t repeats, const char* name) {
  if (repeats < 0) refuse(name, std::to_string(repeats) + " repeats: give 0 or more");
  if (repeats == 1) return x;
  Shape shape = x.shape();
  const int64_t outer = extents(shape, 0, inner), block = extents(shape, inner, x.rank());
  shape[static_cast<size_t>(axis)] = Extent(repeats) * shape[static_cast<size_t>(axis)];
  return reshape(expand(reshape(x, {outer, 1, block}), {outer, repeats, block}), shape);
}
}  // namespace

Tensor repeat_interleave(const Tensor& x, int64_t repeats, std::optional<int64_t> axis) {
  require_defined(x, "repeat_interleave");
  if (!axis) return repeat_interleave(reshape(x, {-1}), repeats, 0);
  const int at = normal_axis(*axis, x.rank(), "repeat_interleave");
  return contiguous(repeated(x, at, at + 1, repeats, "repeat_interleave"));
}

namespace {
// For each element of the result, the position of its element in x. Waits for the device: the counts determine the number of
// elements.
Tensor repeated_positions(const Tensor& counts) {
  if (counts.count() && min(counts).item<int64_t>() < 0)
    refuse("repeat_interleave", "a number of repeats is negative: give 0 or more");
  const int64_t total = sum(counts).item<int64_t>();
  // The position for element j is the number of elements of x whose repeats end at or before j.
  const Tensor none = zeros({total + 1}, DType::i64, counts.device());
  const Tensor ends = scatter_add(none, 0, cumsum(counts, 0), ones_like(counts));
  return cumsum(slice(ends, 0, 0, total), 0);
}
}  // namespace

Tensor repeat_interleave(const Tensor& x, const Tensor& repeats, std::optional<int64_t> axis) {
  constexpr const char* kName = "repeat_interleave";
  require_defined(x, kName);
  require_integer(kName, repeats, "repeats");
  if (!axis) return repeat_interleave(reshape(x, {-1}), repeats, 0);
  const int at = normal_axis(*axis, x.rank(), kName);
  if (repeats.rank() > 1 || (repeats.count() != 1 && repeats.count() != x.size(at)))
    refuse(kName, "repeats have shape " + repeats.shape().text() + " and axis " + std::to_string(at) + " of x has extent " +
                      std::to_string(x.size(at)) + ": expected as many, or one");
  const Tensor counts = contiguous(expand(cast(repeats, DType::i64), {x.size(at)}));
  const Tensor positions = repeated_positions(counts);
  Shape along = x.shape(), shape = x.shape();
  std::ranges::fill(along, 1);
  along[static_cast<size_t>(at)] = shape[static_cast<size_t>(at)] = positions.count();
  return gather(x, at, expand(reshape(positions, along), shape));
}

Tensor repeat(const Tensor& x, const Shape& repeats) {
  require_defined(x, "repeat");
  const int added = repeats.rank() - x.rank();
  if (added < 0)
    refuse("repeat", "repeats are " + repeats.text() + " for shape " + x.shape().text() + ": give one for each axis");
  Shape shape;
  for (int i = 0; i < repeats.rank(); ++i) shape.push_back(i < added ? 1 : x.size(i - added));
  Tensor out = reshape(x, shape);
  for (int i = repeats.rank(); i-- > 0;) out = repeated(out, i, i, repeats[static_cast<size_t>(i)], "repeat");
  return contiguous(out);
}

Tensor tile(const Tensor& x, const Shape& repeats) {
  require_defined(x, "tile");
  Shape all;
  for (int i = repeats.rank(); i < x.rank(); ++i) all.push_back(1);
  for (const int64_t each : repeats) all.push_back(each);
  return repeat(x, all);
}

// --- Windows.

Tensor windows_of(const Tensor& x, const Windows& windows) {
  static constexpr auto kRule =
      rule("unfold", gradient<kShape, kPayload>([](const Tensor& grad, const Shape& shape, const Windows& taken) {
             return add_windows(grad, shape[static_cast<size_t>(taken.axis)], taken);
           }));
  plugrad_view v = view_of(x);
  const int64_t extent = v.shape[windows.axis], count = windows.count(extent);
  const Windows used = count ? windows.used(extent) : windows;
  v.shape[v.rank] = windows.size;
  v.strides[v.rank++] = v.strides[windows.axis] * used.dilation;
  v.shape[windows.axis] = count;
  v.strides[windows.axis] *= used.step;
  set_layout(v, device_of(x).info.alignment);
  return differentiable(kRule, windows, with_view(x, v), x);
}

Tensor add_windows(const Tensor& x, int64_t extent, const Windows& windows) {
  static constexpr auto kRule =
      rule("fold", gradient<kPayload>([](const Tensor& grad, const Windows& added) { return windows_of(grad, added); }));
  Shape shape;
  for (int i = 0; i + 1 < x.rank(); ++i) shape.push_back(i == windows.axis ? extent : x.size(i));
  DeviceState& device = device_of(x);
  Tensor out = filled(device, dense_view(shape, dtype_of(x), device.info.alignment), dtype_of(x), 0);
  const Tensor plain = ungraphed(x), sums = ungraphed(out);
  const int64_t count = x.size(windows.axis);
  const Windows used = count ? windows.used(extent) : windows;
  for (int64_t j = 0; j < windows.size && x.count(); ++j) {
    const Tensor target = strided_part(sums, {windows.axis, j * used.dilation, count, used.step});
    run(Op::ADD, {target}, {target, select(plain, -1, j)});
  }
  return differentiable(kRule, windows, std::move(out), x);
}

Tensor unfold(const Tensor& x, int axis, int64_t size, int64_t step) {
  require_defined(x, "unfold");
  if (!x.rank()) return select(unfold(reshape(x, {1}), axis, size, step), 0, 0);
  const int at = normal_axis(axis, x.rank(), "unfold");
  if (size < 1 || step < 1 || size > x.size(at))
    refuse("unfold", "windows of " + std::to_string(size) + " elements, step " + std::to_string(step) + ", along axis " +
                         std::to_string(at) + " of " + x.shape().text() +
                         ": expected a positive step and a size from 1 to the extent");
  if (x.rank() == PLUGRAD_MAX_RANK) refuse("unfold", "x has shape " + x.shape().text() + ": an axis more exceeds rank 8");
  return windows_of(x, {at, size, step});
}

}  // namespace plugrad
