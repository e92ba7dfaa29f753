// Comparisons that put NaN first.
#pragma once
#include <cmath>

#pragma GCC visibility push(hidden)
namespace plugrad::loops {

// Whether x comes before y. NaN counts as larger than any number for Larger, and as smaller than any number for Smaller.
struct Larger {
  template <class T> bool operator()(T x, T y) const { return x > y || (std::isnan(x) && !std::isnan(y)); }
};
struct Smaller {
  template <class T> bool operator()(T x, T y) const { return x < y || (std::isnan(x) && !std::isnan(y)); }
};

}  // namespace plugrad::loops
#pragma GCC visibility pop
