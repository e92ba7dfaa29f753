// Comparisons in which NaN comes first.
#pragma once
#include <cmath>

#pragma GCC visibility push(hidden)
namespace plugrad::loops {

// Whether x comes before y where NaN is larger, and smaller, than anything.
struct Larger {
  template <class T> bool operator()(T x, T y) const { return x > y || (std::isnan(x) && !std::isnan(y)); }
};
struct Smaller {
  template <class T> bool operator()(T x, T y) const { return x < y || (std::isnan(x) && !std::isnan(y)); }
};

}  // namespace plugrad::loops
#pragma GCC visibility pop
