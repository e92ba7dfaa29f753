// Sums and extremes, and how a thread reduces packs of elements. A reducer R has: Accumulator; Out; Combine, a function of
// two accumulators; kOrderIsFree, whether it accepts a line's elements in any order; identity(); take(x, index), to convert
// an element to an accumulator; finish(accumulator, out, adds), to write the result.
#pragma once
#include <backends/cuda/accumulator.hpp>
#include <backends/cuda/functions.hpp>
#include <backends/cuda/map.hpp>

namespace plugrad::cuda {

template <class To, class In> struct Sum {
  using Accumulator = AccumulatorOf<To>;
  using Out = To;
  using Combine = Add;
  static constexpr bool kOrderIsFree = true;
  __device__ static Accumulator identity() { return 0; }
  __device__ static Accumulator take(In x, uint64_t) { return static_cast<Accumulator>(x); }
  __device__ static void finish(Accumulator sum, To& out, bool adds) {
    out = static_cast<To>(adds ? Add()(static_cast<Accumulator>(out), sum) : sum);
  }
};

template <class T> struct Extreme {
  using Accumulator = AccumulatorOf<T>;
  using Out = T;
  static constexpr bool kOrderIsFree = true;
  __device__ static Accumulator take(T x, uint64_t) { return static_cast<Accumulator>(x); }
  __device__ static void finish(Accumulator best, T& out, bool) { out = static_cast<T>(best); }
};
template <class T> struct Max : Extreme<T> {
  using Combine = Maximum;
  __device__ static AccumulatorOf<T> identity() { return kBottom<AccumulatorOf<T>>; }
};
template <class T> struct Min : Extreme<T> {
  using Combine = Minimum;
  __device__ static AccumulatorOf<T> identity() { return kTop<AccumulatorOf<T>>; }
};

// How a thread reads 16 bytes at once: elements of one line (along) or the same element of adjacent lines (across), if any.
enum class Packing : uint8_t { none, along, across };

template <class Combine> struct Each {
  template <class T, int W> __device__ Pack<T, W> operator()(const Pack<T, W>& a, const Pack<T, W>& b) const {
    Pack<T, W> all;
#pragma unroll
    for (int w = 0; w < W; ++w) all.at[w] = Combine()(a.at[w], b.at[w]);
    return all;
  }
};

// A thread's accumulators for packs of V elements: one for each line of a pack.
template <class R, class In, Packing packing, int V> struct Accumulators {
  static constexpr int W = packing == Packing::across ? V : 1;
  using Sums = Pack<typename R::Accumulator, W>;
  using Combine = Each<typename R::Combine>;

  __device__ static Sums identity() {
    Sums sums;
#pragma unroll
    for (int w = 0; w < W; ++w) sums.at[w] = R::identity();
    return sums;
  }
  __device__ __forceinline__ static void add(Sums& sums, const Pack<In, V>& pack, uint64_t at) {
    if constexpr (W > 1) {
#pragma unroll
      for (int j = 0; j < V; ++j) sums.at[j] = typename R::Combine()(sums.at[j], R::take(pack.at[j], at));
    } else {
      typename R::Accumulator some = R::take(pack.at[0], at * V);
#pragma unroll
      for (int j = 1; j < V; ++j) some = typename R::Combine()(some, R::take(pack.at[j], at * V + j));
      sums.at[0] = typename R::Combine()(sums.at[0], some);
    }
  }
};

}  // namespace plugrad::cuda
