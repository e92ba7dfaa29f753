// Resizing of an axis: the old elements that make up each new element, and their weights.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace plugrad {

struct Taps {
  int64_t each;                    // number of old elements for a new element
  std::vector<int64_t> positions;  // `each` positions for each new element in turn
  std::vector<double> weights;     // empty if `each` is 1
};

// The resizing of an axis from `from` to `to` elements.
struct Resizing {
  int64_t from, to;
  std::optional<double> factor;  // scales places in place of the quotient of the extents
  bool align_corners;

  // The distance between new elements, in elements of the old axis.
  double step() const;
  // The place of new element i's centre on the old axis. Old element i is at place i.
  double place(int64_t i) const;
};

// The number of smooth_taps' taps for each element.
int64_t smooth_count(const Resizing& axis, int reach);
Taps nearest_taps(const Resizing& axis, bool exact);
Taps linear_taps(const Resizing& axis);
Taps cubic_taps(const Resizing& axis);
// All old elements that shrink into a new element. reach: the filter's reach, 1 for lines and 2 for cubes.
Taps smooth_taps(const Resizing& axis, int reach);

}  // namespace plugrad
