// Which elements of an axis make up those of a resized one, and with which weights.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace plugrad {

struct Taps {
  int64_t each;                    // how many elements make up one
  std::vector<int64_t> positions;  // `each` for one after the other
  std::vector<double> weights;     // none where each is 1
};

// An axis with `from` elements that becomes one with `to`.
struct Resizing {
  int64_t from, to;
  std::optional<double> factor;  // that places are scaled by, if not by the quotient
  bool align_corners;

  // The distance, in elements of the old axis, of elements of the new one.
  double step() const;
  // The place of an element's centre on the old axis, on which element i is at i.
  double place(int64_t i) const;
};

// The taps of smooth_taps for each element.
int64_t smooth_count(const Resizing& axis, int reach);
Taps nearest_taps(const Resizing& axis, bool exact);
Taps linear_taps(const Resizing& axis);
Taps cubic_taps(const Resizing& axis);
// All elements that shrink into one. reach: how far the filter reaches, 1 for lines and 2 for cubes.
Taps smooth_taps(const Resizing& axis, int reach);

}  // namespace plugrad
