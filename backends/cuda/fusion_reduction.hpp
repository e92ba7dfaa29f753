// A thread's work in a reducing fusion: the thread computes one element of each operand, as map.hpp does. It stores the
// elements of whole outputs, and reduces the arguments of reductions in the same order as the plugin's own kernels reduce
// dense operands. Values computed from a line's sums need more passes over the line; the later passes read through the
// caches.
//
// Functions have the form of map.hpp. After its operands, a function takes one more reference for each reduction of the
// fusion, and assigns the value to reduce to it.
#pragma once
#include <backends/cuda/reducers.hpp>
#include <backends/cuda/segments.hpp>

namespace plugrad::cuda {

// The argument of the kernel. `kept` locates a line, or a pack of them; `reduced` an element of a line, or a pack of them.
template <int N> struct FusionReduction {
  Memories<N> memories;
  Axes<N> kept, reduced;
  Segments segments;
  char* partials;
  uint32_t* counters;
};

// A reduction of slot k, with elements of type In. If no pass follows, output `to` is its result.
template <size_t k, size_t to, class R, class In, Packing packing, int V> struct Reduced : Accumulators<R, In, packing, V> {
  static constexpr size_t kSlot = k, kTo = to;
  using Reducer = R;
};
inline constexpr size_t kNoOutput = ~size_t{0};

// The accumulators of several reductions. They have equal size, so a set has no padding.
template <size_t i, class R> struct SumsAt {
  typename R::Sums sums;
};
template <class Numbers, class... R> struct SumSet;
template <size_t... i, class... R> struct SumSet<std::index_sequence<i...>, R...> : SumsAt<i, R>... {
  __device__ static SumSet identity() { return {{R::identity()}...}; }
  template <class Slots> __device__ __forceinline__ void add(const Slots& slots, uint64_t at) {
    (R::add(static_cast<SumsAt<i, R>&>(*this).sums, slots.template slot<R::kSlot>().pack, at), ...);
  }
  __device__ __forceinline__ SumSet combined(const SumSet& other) const {
    return {{typename R::Combine()(SumsAt<i, R>::sums, static_cast<const SumsAt<i, R>&>(other).sums)}...};
  }
  template <int N> __device__ __forceinline__ void finish(const Memories<N>& to, const Offsets<N>& line) const {
    (finish_one<R>(SumsAt<i, R>::sums, to, line), ...);
  }
  // Returns a line's result of reduction j.
  template <size_t j> __device__ __forceinline__ auto result() const { return result_of<j>(*this); }

 private:
  template <class One, int N>
  __device__ static void finish_one(const typename One::Sums& sums, const Memories<N>& to, const Offsets<N>& line) {
    if constexpr (One::kTo != kNoOutput) {
      auto* const base = reinterpret_cast<typename One::Reducer::Out*>(const_cast<char*>(to.base[One::kTo]));
#pragma unroll
      for (int w = 0; w < One::W; ++w) One::Reducer::finish(sums.at[w], base[line.at[One::kTo] + w], false);
    }
  }
  template <size_t j, class One> __device__ __forceinline__ static auto result_of(const SumsAt<j, One>& one) {
    typename One::Reducer::Out out;
    One::Reducer::finish(one.sums.at[0], out, false);
    return out;
  }
};
template <class... R> using SumSetOf = SumSet<std::index_sequence_for<R...>, R...>;

// Computes a team member's share of a line's elements or packs from begin to end, and calls done(slots, i) after each.
template <int U, class Slots, class F, class Done>
__device__ __forceinline__ void compute_line(const FusionReduction<Slots::N>& p, const Offsets<Slots::N>& line, const F& f,
                                             uint64_t begin, uint64_t end, Done done) {
  const uint32_t step = p.segments.team.size(), last = static_cast<uint32_t>(end);
  for (uint32_t first = static_cast<uint32_t>(begin) + p.segments.team.member(); first < last; first += step * U) {
    Slots slots[U];
    Offsets<Slots::N> offsets[U];
#pragma unroll
    for (int u = 0; u < U; ++u) {
      const uint32_t i = first + u * step;
      if (i >= last) continue;
      offsets[u] = locate(p.reduced, i);
#pragma unroll
      for (int k = 0; k < Slots::N; ++k) offsets[u].at[k] += line.at[k];
      slots[u].template load<F>(p.memories, offsets[u]);
    }
#pragma unroll
    for (int u = 0; u < U; ++u) {
      const uint32_t i = first + u * step;
      if (i >= last) continue;
      slots[u].compute(f);
      slots[u].template store<F>(p.memories, offsets[u]);
      done(slots[u], i);
    }
  }
}

// The kernel's reducer, in the sense of segments.hpp.
template <class F, int U, class Slots, class Set> struct FusionLines {
  using Sums = Set;
  using Line = Offsets<Slots::N>;
  struct Combine {
    __device__ __forceinline__ Sums operator()(const Sums& a, const Sums& b) const { return a.combined(b); }
  };

  const FusionReduction<Slots::N>& p;
  const F& f;

  __device__ static Sums identity() { return Sums::identity(); }
  __device__ __forceinline__ Line line(uint64_t number) const { return locate(p.kept, static_cast<uint32_t>(number)); }
  __device__ __forceinline__ Sums run(const Line& line, uint64_t begin, uint64_t end) const {
    Sums sums = identity();
    compute_line<U, Slots>(p, line, f, begin, end, [&](const Slots& slots, uint64_t i) { sums.add(slots, i); });
    return sums;
  }
  __device__ __forceinline__ void finish(const Line& line, const Sums& sums) const { sums.finish(p.memories, line); }
};

// A fusion of one pass.
template <int U, class Slots, class Set, class F>
__device__ __forceinline__ void reduce_fusion(const FusionReduction<Slots::N>& p, const F& f) {
  reduce_lines(FusionLines<F, U, Slots, Set>{p, f}, p.segments, reinterpret_cast<Set*>(p.partials), p.counters);
}

// --- Fusions of several passes. One team takes all segments of a line.

template <int N> struct FusionLine {
  Offsets<N> offsets;
  bool is_there;  // a team may have no line
};

// Calls body(line) for each line of this thread's team. All threads of the block call it equally often.
template <int N, class Body> __device__ __forceinline__ void each_line(const FusionReduction<N>& p, Body body) {
  const Team& team = p.segments.team;
  for (uint32_t group = blockIdx.x; group < p.segments.tasks / p.segments.per_line; group += gridDim.x) {
    const uint64_t number = static_cast<uint64_t>(group) * team.teams() + team.team();
    const bool is_there = number < p.segments.lines;
    body(FusionLine<N>{is_there ? locate(p.kept, static_cast<uint32_t>(number)) : Offsets<N>{}, is_there});
  }
}

// Reduces a line, and returns the result to all of its team. Each member combines the same segments as in reduce_lines.
template <int U, class Slots, class Set, class F>
__device__ __forceinline__ Set reduce_line(const FusionReduction<Slots::N>& p, const FusionLine<Slots::N>& line,
                                           const F& f) {
  using Lines = FusionLines<F, U, Slots, Set>;
  __shared__ Set shared[kBlock];
  const Segments& segments = p.segments;
  const Team& team = segments.team;
  Set sums = Set::identity();
  for (uint32_t s = 0; s < segments.per_line; ++s) {
    const uint64_t begin = s * segments.size;
    const uint64_t end = begin + segments.size < segments.length ? begin + segments.size : segments.length;
    Set part = line.is_there ? reduce_segment(Lines{p, f}, segments, line.offsets, begin, end) : Set::identity();
    part = team.template reduce<typename Lines::Combine>(part, shared);
    if (segments.per_line == 1) return part;
    if ((s & (team.size() - 1)) == team.member()) sums = sums.combined(part);
  }
  return team.template reduce<typename Lines::Combine>(sums, shared);
}

// Stores a line's whole outputs.
template <int U, class Slots, class F>
__device__ __forceinline__ void store_line(const FusionReduction<Slots::N>& p, const FusionLine<Slots::N>& line,
                                           const F& f) {
  if (line.is_there) compute_line<U, Slots>(p, line.offsets, f, 0, p.segments.length, [](const Slots&, uint64_t) {});
}

// Stores the outputs with one element per line. The whole line has been read before.
template <class Slots, class F>
__device__ __forceinline__ void finish_line(const FusionReduction<Slots::N>& p, const FusionLine<Slots::N>& line,
                                            const F& f) {
  __syncthreads();
  if (!line.is_there || p.segments.team.member() != 0) return;
  Slots slots;
  slots.template load<F>(p.memories, line.offsets);
  slots.compute(f);
  slots.template store<F>(p.memories, line.offsets);
}

}  // namespace plugrad::cuda
