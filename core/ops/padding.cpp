#include <plugrad/ops/arrangement.hpp>

#include <core/ops/argument.hpp>
#include <core/ops/extent.hpp>
#include <core/ops/run.hpp>
#include <core/ops/slicing.hpp>
#include <plugrad/ops/views.hpp>

#include <algorithm>

namespace plugrad {
namespace {
using Pads = std::vector<int64_t>;
struct Borders {
  Shape before, after;  // elements to add, by axis
};

Borders borders_of(const Tensor& x, const Pads& pads) {
  if (pads.size() % 2 || pads.size() > 2 * static_cast<size_t>(x.rank()))
    refuse("pad", std::to_string(pads.size()) + " pads for shape " + x.shape().text() + ": expected two for each axis, or " +
                      "for some of the last axes");
  Borders borders;
  for (int i = 0; i < x.rank(); ++i) {
    const size_t from_end = 2 * static_cast<size_t>(x.rank() - 1 - i);
    const bool given = from_end < pads.size();
    borders.before.push_back(given ? pads[from_end] : 0);
    borders.after.push_back(given ? pads[from_end + 1] : 0);
    if (Extent(x.size(i)) + borders.before.back() + borders.after.back() < 0)
      refuse("pad", "negative pads remove more elements than axis " + std::to_string(i) + " of " + x.shape().text() +
                        " has: remove fewer");
  }
  return borders;
}

// x without the elements removed by negative borders.
Tensor cropped(Tensor x, const Borders& borders) {
  for (int i = 0; i < x.rank(); ++i) {
    const int64_t first = std::max<int64_t>(-Extent(borders.before[static_cast<size_t>(i)]), 0);
    const int64_t last = std::max<int64_t>(-Extent(borders.after[static_cast<size_t>(i)]), 0);
    const int64_t start = std::min(first, x.size(i)), count = std::max<int64_t>(x.size(i) - start - last, 0);
    if (first || last) x = strided_part(x, {i, start, count, 1});
  }
  return x;
}

// The part of a padded tensor without the padding, in x's shape.
Tensor inner(Tensor padded, const Shape& before, const Shape& shape) {
  for (int i = 0; i < shape.rank(); ++i) {
    const size_t at = static_cast<size_t>(i);
    if (padded.size(i) != shape[at]) padded = strided_part(padded, {i, before[at], shape[at], 1});
  }
  return padded;
}

// borders: none is negative.
Tensor padded(const Tensor& x, const Borders& borders, Number value) {
  static constexpr auto kRule =
      rule("pad", gradient<kShape, kPayload>([](const Tensor& grad, const Shape& shape, const Shape& before) {
             return inner(grad, before, shape);
           }));
  Shape shape = x.shape();
  for (size_t i = 0; i < shape.size(); ++i) shape[i] = Extent(shape[i]) + borders.before[i] + borders.after[i];
  DeviceState& device = device_of(x);
  Tensor out = filled(device, dense_view(shape, dtype_of(x), device.info.alignment), dtype_of(x), value);
  if (x.count()) run(Op::COPY, {inner(out, borders.before, x.shape())}, {x});
  return differentiable(kRule, borders.before, std::move(out), x);
}
}  // namespace

Tensor pad(const Tensor& x, const std::vector<int64_t>& pads, Number value) {
  require_defined(x, "pad");
  Borders borders = borders_of(x, pads);
  const Tensor kept = cropped(x, borders);
  for (size_t i = 0; i < borders.before.size(); ++i) {
    // If an end removes more than the axis has, the opposite border shrinks.
    const Extent target = Extent(x.size(static_cast<int>(i))) + borders.before[i] + borders.after[i];
    borders.before[i] = std::max<int64_t>(borders.before[i], 0);
    borders.after[i] = std::max<int64_t>(borders.after[i], 0);
    const Extent surplus = Extent(kept.size(static_cast<int>(i))) + borders.before[i] + borders.after[i] - target;
    (borders.before[i] ? borders.before[i] : borders.after[i]) -= surplus;
  }
  return padded(kept, borders, value);
}

// --- Padding by elements of x.

namespace {
// The elements of the border before or after an axis of x.
Tensor border(const Tensor& x, int axis, int64_t count, bool before, PadMode mode) {
  const int64_t n = x.size(axis);
  if (mode == PadMode::circular) return before ? slice(x, axis, n - count, n) : slice(x, axis, 0, count);
  if (mode == PadMode::reflect)
    return flip(before ? slice(x, axis, 1, count + 1) : slice(x, axis, n - 1 - count, n - 1), {axis});
  Shape shape = x.shape();
  shape[static_cast<size_t>(axis)] = count;
  return expand(slice(x, axis, before ? 0 : n - 1, before ? 1 : n), shape);
}

Tensor with_borders(const Tensor& x, int axis, int64_t before, int64_t after, PadMode mode) {
  const int64_t n = x.size(axis), most = mode == PadMode::reflect ? n - 1 : n;
  if (mode == PadMode::replicate ? !n : before > most || after > most)
    refuse("pad", "pads " + std::to_string(before) + " and " + std::to_string(after) + " for axis " + std::to_string(axis) +
                      " of " + x.shape().text() + ": it has too few elements to take them from");
  std::vector<Tensor> parts;
  if (before) parts.push_back(border(x, axis, before, true, mode));
  parts.push_back(x);
  if (after) parts.push_back(border(x, axis, after, false, mode));
  return cat(parts, axis);
}
}  // namespace

Tensor pad(const Tensor& x, const std::vector<int64_t>& pads, PadMode mode, Number value) {
  if (mode == PadMode::constant) return pad(x, pads, value);
  require_defined(x, "pad");
  const Borders borders = borders_of(x, pads);
  Tensor out = cropped(x, borders);
  for (int i = 0; i < x.rank(); ++i) {
    const int64_t before = std::max<int64_t>(borders.before[static_cast<size_t>(i)], 0);
    const int64_t after = std::max<int64_t>(borders.after[static_cast<size_t>(i)], 0);
    if (before || after) out = with_borders(out, i, before, after, mode);
  }
  return out;
}

}  // namespace plugrad
