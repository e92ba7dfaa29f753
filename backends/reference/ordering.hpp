// Comparisons in which NaN comes first.
#pragma once
#include <cmath>

namespace plugrad::reference {

// Whether x comes before y where NaN is larger, and smaller, than anything.
struct Larger {
  template <class T> bool operator()(T x, T y) const { return x > y || (std::isnan(x) && !std::isnan(y)); }
};
struct Smaller {
  template <class T> bool operator()(T x, T y) const { return x < y || (std::isnan(x) && !std::isnan(y)); }
};

}  // namespace plugrad::reference
