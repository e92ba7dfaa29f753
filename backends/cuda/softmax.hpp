// Logarithms of sums of exponentials along a line, in one pass over it.
#pragma once
#include <backends/cuda/functions.hpp>
#include <backends/cuda/team.hpp>
#include <backends/cuda/walk.hpp>

namespace plugrad::cuda {

// The largest of some elements, and the sum of e^(x - largest). Of no elements, and of -inf alone: -inf and 0.
template <class T> struct Exponentials { T largest, sum; };

template <class T> __device__ __forceinline__ void include(Exponentials<T>& e, T x) {
  if (x > e.largest) {
    e.sum = e.sum * std::exp(e.largest - x) + (1 + (x - x));  // x - x: NaN where x is infinite, else 0
    e.largest = x;
  } else if (x != kBottom<T>) {
    e.sum += std::exp(x - e.largest);
  }
}

struct Together {
  template <class T> __device__ Exponentials<T> operator()(const Exponentials<T>& a, const Exponentials<T>& b) const {
    if (a.largest == b.largest) return {a.largest, a.sum + b.sum};
    if (a.largest > b.largest) return {a.largest, a.sum + b.sum * std::exp(b.largest - a.largest)};
    return {b.largest, b.sum + a.sum * std::exp(a.largest - b.largest)};
  }
};

// Of a whole line, for each member of the team. Where the team's line does not exist, of nothing.
template <class T>
__device__ Exponentials<T> exponentials(const Team& team, const T* line, int64_t n, int64_t stride,
                                        Exponentials<T>* shared) {
  Exponentials<T> mine{kBottom<T>, 0};
  for (int64_t i = team.member(); line && i < n; i += team.size()) include(mine, line[i * stride]);
  return team.reduce<Together>(mine, shared);
}

}  // namespace plugrad::cuda
