// Nocedal and Wright, Numerical Optimization, 2006, algorithms 3.5 and 3.6, with cubic interpolation.
#include <core/nn/wolfe_search.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace plugrad::nn {
namespace {
constexpr double kDescent = 1e-4, kCurvature = 0.9;

// Returns the minimiser, limited to [least, most], of the cubic polynomial with the losses and slopes of two points
// (equation 3.59), or the middle of least and most if the polynomial has no minimum.
double cubic_minimum(const LinePoint& a, const LinePoint& b, double least, double most) {
  const auto& [low, high] = a.length <= b.length ? std::pair<const LinePoint&, const LinePoint&>(a, b)
                                                 : std::pair<const LinePoint&, const LinePoint&>(b, a);
  const double width = high.length - low.length;
  const double d = low.slope + high.slope - 3 * (high.loss - low.loss) / width;
  const double square = d * d - low.slope * high.slope;
  if (!(square >= 0) || !std::isfinite(square)) return 0.5 * (least + most);
  const double root = std::sqrt(square);
  const double at = high.length - width * (high.slope + root - d) / (high.slope - low.slope + 2 * root);
  return std::isnan(at) ? 0.5 * (least + most) : std::clamp(at, least, most);
}

class Search {
 public:
  Search(const std::function<LinePoint(double)>& evaluate, const LinePoint& start, int most, double resolution)
      : evaluate_(evaluate), start_(start), most_(most), resolution_(resolution) {}

  LinePoint run(double length) {
    LinePoint before = start_, point = evaluate_(length);
    for (; tried_ < most_; ++tried_) {
      if (!falls(point) || (tried_ > 1 && point.loss >= before.loss)) return between(std::move(before), std::move(point));
      if (is_flat(point)) return point;
      if (point.slope >= 0) return between(std::move(before), std::move(point));
      const double least = point.length + 0.01 * (point.length - before.length);
      length = cubic_minimum(before, point, least, 10 * point.length);
      before = std::exchange(point, evaluate_(length));
    }
    return start_.loss <= point.loss ? start_ : point;
  }

 private:
  bool falls(const LinePoint& point) const {  // false for NaN
    return point.loss <= start_.loss + kDescent * point.length * start_.slope;
  }
  bool is_flat(const LinePoint& point) const { return std::abs(point.slope) <= -kCurvature * start_.slope; }

  // Keeps a length away from the ends of the bracket: at once if it is outside, else from the second time on.
  double inside(double length, double first, double last) {
    const double margin = 0.1 * (last - first);
    if (std::min(last - length, length - first) >= margin) {
      was_close_ = false;
      return length;
    }
    if (!was_close_ && length < last && length > first) {
      was_close_ = true;
      return length;
    }
    was_close_ = false;
    return std::abs(length - last) < std::abs(length - first) ? last - margin : first + margin;
  }

  // Searches between two points with a good length between them.
  LinePoint between(LinePoint a, LinePoint b) {
    if (!(a.loss <= b.loss)) std::swap(a, b);
    LinePoint &low = a, &high = b;  // by their losses
    for (; tried_ < most_; ++tried_) {
      const auto [first, last] = std::minmax(low.length, high.length);
      if (last - first < resolution_) break;
      LinePoint point = evaluate_(inside(cubic_minimum(low, high, first, last), first, last));
      if (!falls(point) || point.loss >= low.loss) {
        high = std::move(point);
        if (high.loss < low.loss) std::swap(low, high);
        continue;
      }
      const bool is_done = is_flat(point);
      if (!is_done && point.slope * (high.length - low.length) >= 0) high = low;
      low = std::move(point);
      if (is_done) break;
    }
    return low;
  }

  const std::function<LinePoint(double)>& evaluate_;
  const LinePoint& start_;
  int most_, tried_ = 0;
  double resolution_;
  bool was_close_ = false;
};
}  // namespace

LinePoint wolfe_search(const std::function<LinePoint(double)>& evaluate, const LinePoint& start, double first, int most,
                       double resolution) {
  return Search(evaluate, start, most, resolution).run(first);
}

}  // namespace plugrad::nn
