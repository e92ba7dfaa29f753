#include <core/ops/taps.hpp>

#include <algorithm>
#include <cmath>

namespace plugrad {
namespace {
constexpr double kSharpness = -0.75, kSmoothSharpness = -0.5;  // of cubes

// The weight of a neighbour at this distance, by a cube.
double cubic_weight(double distance, double a) {
  const double t = std::abs(distance);
  if (t < 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
}
double linear_weight(double distance) { return std::max(1 - std::abs(distance), 0.0); }
}  // namespace

double Resizing::step() const {
  if (align_corners) return to > 1 ? static_cast<double>(from - 1) / static_cast<double>(to - 1) : 0;
  return factor ? 1 / *factor : static_cast<double>(from) / static_cast<double>(to);
}
double Resizing::place(int64_t i) const {
  const double at = static_cast<double>(i);
  return align_corners ? step() * at : step() * (at + 0.5) - 0.5;
}

Taps nearest_taps(const Resizing& axis, bool exact) {
  Taps taps{1, {}, {}};
  // PyTorch computes in f32, and places are often just below or above a whole number.
  const float step =
      axis.factor ? static_cast<float>(1 / *axis.factor) : static_cast<float>(axis.from) / static_cast<float>(axis.to);
  for (int64_t i = 0; i < axis.to; ++i) {
    const float place = (static_cast<float>(i) + (exact ? 0.5f : 0)) * step;
    taps.positions.push_back(std::min(static_cast<int64_t>(std::floor(place)), axis.from - 1));
  }
  return taps;
}

Taps linear_taps(const Resizing& axis) {
  Taps taps{2, {}, {}};
  for (int64_t i = 0; i < axis.to; ++i) {
    const double place = axis.from == axis.to ? static_cast<double>(i) : std::max(axis.place(i), 0.0);
    const int64_t low = std::min(static_cast<int64_t>(place), axis.from - 1), high = std::min(low + 1, axis.from - 1);
    const double upper = std::clamp(place - static_cast<double>(low), 0.0, 1.0);
    taps.positions.insert(taps.positions.end(), {low, high});
    taps.weights.insert(taps.weights.end(), {1 - upper, upper});
  }
  return taps;
}

Taps cubic_taps(const Resizing& axis) {
  Taps taps{4, {}, {}};
  for (int64_t i = 0; i < axis.to; ++i) {
    const double place = axis.place(i);
    const int64_t low = std::min(static_cast<int64_t>(std::floor(place)), axis.from - 1);
    const double upper = std::clamp(place - static_cast<double>(low), 0.0, 1.0);
    for (int j = -1; j <= 2; ++j) {
      taps.positions.push_back(std::clamp<int64_t>(low + j, 0, axis.from - 1));
      taps.weights.push_back(cubic_weight(upper - j, kSharpness));
    }
  }
  return taps;
}

int64_t smooth_count(const Resizing& axis, int reach) {
  const double most = std::ceil(reach * std::max(axis.step(), 1.0)) * 2 + 1;
  return most < static_cast<double>(axis.from) ? static_cast<int64_t>(most) : axis.from;
}

Taps smooth_taps(const Resizing& axis, int reach) {
  const double step = axis.step(), shrink = std::max(step, 1.0), support = reach * shrink;
  Taps taps{smooth_count(axis, reach), {}, {}};
  for (int64_t i = 0; i < axis.to; ++i) {
    const double centre = step * (static_cast<double>(i) + 0.5);
    const int64_t first = std::max<int64_t>(static_cast<int64_t>(centre - support + 0.5), 0);
    const int64_t end = std::min(static_cast<int64_t>(centre + support + 0.5), axis.from);
    double total = 0;
    for (int64_t j = first; j < first + taps.each; ++j) {
      const double distance = (static_cast<double>(j) - centre + 0.5) / shrink;
      const double weight = reach == 1 ? linear_weight(distance) : cubic_weight(distance, kSmoothSharpness);
      taps.positions.push_back(std::min(j, axis.from - 1));
      taps.weights.push_back(j < end ? weight : 0);
      total += taps.weights.back();
    }
    for (int64_t j = 0; j < taps.each; ++j) *(taps.weights.end() - 1 - j) /= total;
  }
  return taps;
}

}  // namespace plugrad
