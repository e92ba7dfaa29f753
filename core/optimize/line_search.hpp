// The line search of More and Thuente, Line Search Algorithms with Guaranteed Sufficient Decrease, 1994.
#pragma once
#include <functional>

namespace plugrad::optimize {

// A length along the direction, the function's value there, and its slope along the direction.
struct LineTrial {
  double length, value, slope;
};

// The value falls by at least `descent` times the first slope times the length, and the slope's size to at most `curvature`
// times the first one's. The search ends early where the bracket's relative width is at most `tolerance`.
struct LineLimits {
  double descent, curvature, tolerance;
  double least, most;  // lengths
  int trials;          // evaluations
};

enum class LineEnd {
  satisfied,  // both conditions hold
  stuck,      // no better length within the limits
  exhausted,  // after the allowed number of trials
};

struct LineResult {
  LineTrial trial;  // the last one
  LineEnd end;
};

// start: the length 0, where the slope is negative. first: the first length. Where the value is not finite, the search
// continues below.
LineResult line_search(const std::function<LineTrial(double length)>& evaluate, const LineTrial& start, double first,
                       const LineLimits& limits);

}  // namespace plugrad::optimize
