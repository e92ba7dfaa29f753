#include <core/io/onnx/ops/tables.hpp>
#include <core/io/onnx/ops/windows.hpp>
#include <plugrad/ops/arrangement.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/selection.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/error.hpp>

#include <algorithm>
#include <cstdlib>

namespace plugrad::io::onnx {
namespace {

// The places of one axis that a padded axis takes its elements from.
std::vector<int64_t> border_places(int64_t before, int64_t extent, int64_t after, const std::string& mode) {
  if (!extent) throw Error(Code::invalid, "an empty axis cannot be padded in the mode " + mode);
  std::vector<int64_t> all;
  Call::countable(static_cast<double>(before) + static_cast<double>(extent) + static_cast<double>(after));
  const int64_t last = extent - 1, period = 2 * std::max<int64_t>(last, 1);
  for (int64_t i = -before; i < extent + after; ++i) {
    if (mode == "edge") all.push_back(std::clamp<int64_t>(i, 0, last));
    else if (mode == "wrap") all.push_back(((i % extent) + extent) % extent);
    else if (mode == "reflect") all.push_back(last ? std::abs(((i + last) % period + period) % period - last) : 0);
    else throw Error(Code::invalid, "the mode '" + mode + "' is not one of constant, reflect, edge and wrap");
  }
  return all;
}

Value padding(Call& c) {
  const int rank = c.rank(0);
  const Extents pads = c.has(1) ? c.integers(1) : c.integers("pads");
  Extents axes = c.has(3) ? c.integers(3) : Extents();
  if (axes.empty())
    for (int d = 0; d < rank; ++d) axes.push_back(d);
  Extents before(static_cast<size_t>(rank)), after(static_cast<size_t>(rank));
  for (size_t k = 0; k < axes.size(); ++k) {
    const size_t d = static_cast<size_t>(Call::axis(axes[k], rank));
    before[d] = pads.at(k);
    after[d] = pads.at(k + axes.size());
  }
  const std::string mode = c.text("mode", "constant");
  Tensor x = c.tensor(0);
  if (mode == "constant") {
    size_t first = 0;
    while (first < before.size() && !before[first] && !after[first]) ++first;
    const Extents low(before.begin() + static_cast<int64_t>(first), before.end());
    const Extents high(after.begin() + static_cast<int64_t>(first), after.end());
    if (!c.floating(0) && c.has(2)) return c.like(padded(x, low, high, c.integer(2)));
    const double value = c.has(2) ? c.real(size_t{2}) : c.real("value", 0);
    return c.like(padded(x, low, high, c.floating(0) ? Number(value) : Number(static_cast<int64_t>(value))));
  }
  for (int d = 0; d < rank; ++d) {
    const int64_t low = before[static_cast<size_t>(d)], high = after[static_cast<size_t>(d)];
    if (!low && !high) continue;
    const std::vector<int64_t> places = border_places(low, x.size(d), high, mode);
    x = index_select(x, d, c.made(places, {static_cast<int64_t>(places.size())}));
  }
  return c.like(x);
}

Value center_crop_pad(Call& c) {
  const int rank = c.rank(0);
  const Extents wanted = c.integers(1);
  Extents axes = c.integers("axes"), before(static_cast<size_t>(rank)), after(static_cast<size_t>(rank));
  if (axes.empty())
    for (int d = 0; d < rank; ++d) axes.push_back(d);
  for (size_t k = 0; k < axes.size(); ++k) {
    const int d = Call::axis(axes[k], rank);
    const int64_t more = wanted.at(k) - c.tensor(0).size(d);
    before[static_cast<size_t>(d)] = more >= 0 ? more / 2 : -(-more / 2);
    after[static_cast<size_t>(d)] = more - before[static_cast<size_t>(d)];
  }
  return c.like(padded(c.tensor(0), before, after));
}

constexpr Operator kCombining[] = {{"Pad", padding}, {"CenterCropPad", center_crop_pad}};
}  // namespace

std::span<const Operator> combining_operators() { return kCombining; }

}  // namespace plugrad::io::onnx
