#include <core/optimize/line_search.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace plugrad::optimize {
namespace {

// The interval that contains a good length: `best` has the lowest value so far, `other` is its other end. Before the
// interval is bracketed, both are behind the next trial.
struct Interval {
  LineTrial best, other;
  bool is_bracketed = false;
};

double root_of(double theta, double a, double b) {
  const double scale = std::max({std::abs(theta), std::abs(a), std::abs(b)});
  return scale * std::sqrt(std::max(0.0, (theta / scale) * (theta / scale) - (a / scale) * (b / scale)));
}

double theta_of(const LineTrial& x, const LineTrial& t) {
  return 3 * (x.value - t.value) / (t.length - x.length) + x.slope + t.slope;
}

// The minimiser of the cubic polynomial through both points, as seen from x; gamma has the sign of x - t.
double cubic_from_best(const LineTrial& x, const LineTrial& t) {
  const double theta = theta_of(x, t), root = root_of(theta, x.slope, t.slope);
  const double gamma = t.length < x.length ? -root : root;
  return x.length + (gamma - x.slope + theta) / (gamma - x.slope + gamma + t.slope) * (t.length - x.length);
}

double cubic_from_trial(const LineTrial& x, const LineTrial& t) {
  const double theta = theta_of(x, t), root = root_of(theta, x.slope, t.slope);
  const double gamma = t.length > x.length ? -root : root;
  return t.length + (gamma - t.slope + theta) / (gamma - t.slope + gamma + x.slope) * (x.length - t.length);
}

double secant(const LineTrial& x, const LineTrial& t) {
  return t.length + t.slope / (t.slope - x.slope) * (x.length - t.length);
}

// Case 3 of section 4: the value and the slope's size fall, and the slope keeps its sign.
double extrapolated(const Interval& in, const LineTrial& t, double least, double most) {
  const LineTrial& x = in.best;
  const double theta = theta_of(x, t), root = root_of(theta, x.slope, t.slope);
  const double gamma = t.length > x.length ? -root : root;
  const double ratio = (gamma - t.slope + theta) / (gamma + (x.slope - t.slope) + gamma);
  double cubic = t.length > x.length ? most : least;
  if (ratio < 0 && gamma != 0) cubic = t.length + ratio * (x.length - t.length);
  const double line = secant(x, t);
  const bool cubic_is_closer = std::abs(cubic - t.length) < std::abs(line - t.length);
  if (!in.is_bracketed) return std::clamp(cubic_is_closer ? line : cubic, least, most);
  const double next = cubic_is_closer ? cubic : line, limit = t.length + 0.66 * (in.other.length - t.length);
  return t.length > x.length ? std::min(limit, next) : std::max(limit, next);
}

// Returns the next length and moves the interval: section 4.
double next_length(Interval& in, const LineTrial& t, double least, double most) {
  const LineTrial& x = in.best;
  const bool turns = t.slope * std::copysign(1.0, x.slope) < 0;
  double next = 0;
  if (t.value > x.value) {
    const double cubic = cubic_from_best(x, t);
    const double quadratic =
        x.length + x.slope / ((x.value - t.value) / (t.length - x.length) + x.slope) / 2 * (t.length - x.length);
    const bool cubic_is_closer = std::abs(cubic - x.length) < std::abs(quadratic - x.length);
    next = cubic_is_closer ? cubic : cubic + (quadratic - cubic) / 2;
    in.is_bracketed = true;
  } else if (turns) {
    const double cubic = cubic_from_trial(x, t), line = secant(x, t);
    next = std::abs(cubic - t.length) > std::abs(line - t.length) ? cubic : line;
    in.is_bracketed = true;
  } else if (std::abs(t.slope) < std::abs(x.slope)) {
    next = extrapolated(in, t, least, most);
  } else if (in.is_bracketed) {
    next = cubic_from_trial(in.other, t);
  } else {
    next = t.length > x.length ? most : least;
  }
  if (t.value > x.value) {
    in.other = t;
  } else {
    if (turns) in.other = in.best;
    in.best = t;
  }
  return next;
}

class LineSearch {
 public:
  LineSearch(const LineTrial& start, const LineLimits& limits)
      : start_(start), limits_(limits), in_{start, start}, width_(limits.most - limits.least), width_before_(2 * width_) {}

  LineResult run(const std::function<LineTrial(double)>& evaluate, double length) {
    least_ = 0;
    most_ = 5 * length;
    for (int trial = 1;; ++trial) {
      const LineTrial t = evaluate(length);
      if (!std::isfinite(t.value) || !std::isfinite(t.slope)) {
        if (trial >= limits_.trials) return {t, LineEnd::exhausted};
        barrier_ = length;
        length = in_.best.length + 0.1 * (barrier_ - in_.best.length);
        continue;
      }
      const double wanted = start_.value + t.length * limits_.descent * start_.slope;
      if (t.value <= wanted && t.slope >= 0) falls_ = true;
      if (t.value <= wanted && std::abs(t.slope) <= -limits_.curvature * start_.slope) return {t, LineEnd::satisfied};
      if (is_stuck(t, wanted)) return {t, LineEnd::stuck};
      if (trial >= limits_.trials) return {t, LineEnd::exhausted};
      length = next(t, wanted);
    }
  }

 private:
  bool is_narrow() const { return in_.is_bracketed && most_ - least_ <= limits_.tolerance * most_; }
  bool is_stuck(const LineTrial& t, double wanted) const {
    const double slope = limits_.descent * start_.slope;
    return (in_.is_bracketed && (t.length <= least_ || t.length >= most_)) || is_narrow() ||
           (t.length == limits_.most && t.value <= wanted && t.slope <= slope) ||
           (t.length == limits_.least && (t.value > wanted || t.slope >= slope));
  }

  // Until a value lies below the wanted line with a rising slope, the search takes the difference from this line.
  double next(const LineTrial& t, double wanted) {
    double length = 0;
    if (!falls_ && t.value <= in_.best.value && t.value > wanted) {
      const double slope = limits_.descent * start_.slope;
      const auto turned = [&](const LineTrial& x, double by) {
        return LineTrial{x.length, x.value - by * x.length * slope, x.slope - by * slope};
      };
      Interval turned_in{turned(in_.best, 1), turned(in_.other, 1), in_.is_bracketed};
      length = next_length(turned_in, turned(t, 1), least_, most_);
      in_ = {turned(turned_in.best, -1), turned(turned_in.other, -1), turned_in.is_bracketed};
    } else {
      length = next_length(in_, t, least_, most_);
    }
    return limited(length);
  }

  double limited(double length) {
    const double best = in_.best.length, other = in_.other.length;
    if (in_.is_bracketed) {
      if (std::abs(other - best) >= 0.66 * width_before_) length = best + 0.5 * (other - best);
      width_before_ = width_;
      width_ = std::abs(other - best);
      least_ = std::min(best, other);
      most_ = std::max(best, other);
    } else {
      least_ = length + 1.1 * (length - best);
      most_ = length + 4 * (length - best);
    }
    length = std::clamp(length, limits_.least, limits_.most);
    if (length >= barrier_) length = best + 0.5 * (barrier_ - best);
    const bool is_useless = in_.is_bracketed && (length <= least_ || length >= most_ || is_narrow());
    return is_useless ? best : length;
  }

  LineTrial start_;
  LineLimits limits_;
  Interval in_;
  double width_, width_before_, least_ = 0, most_ = 0;
  double barrier_ = std::numeric_limits<double>::infinity();  // the least length at which the value was not finite
  bool falls_ = false;
};
}  // namespace

LineResult line_search(const std::function<LineTrial(double)>& evaluate, const LineTrial& start, double first,
                       const LineLimits& limits) {
  return LineSearch(start, limits).run(evaluate, first);
}

}  // namespace plugrad::optimize
