// What a thread does in a program that reduces: it computes one element of each operand, as map.hpp does, stores those of
// whole outputs, and reduces the others in the order in which the plugin's own kernels reduce dense operands.
#pragma once
#include <backends/cuda/reducers.hpp>
#include <backends/cuda/segments.hpp>

namespace plugrad::cuda {

// The argument of the kernel. `kept` locates a line, or a pack of them; `reduced` an element of a line, or a pack of them.
template <int N> struct ProgramReduction {
  Memories<N> memories;
  Axes<N> kept, reduced;
  Segments segments;
  char* partials;
  uint32_t* counters;
};

// One reduction of a program: Reducer reduces the elements of slot k, which are of type In, to output k.
template <size_t k, class R, class In, Packing packing, int V> struct Reduced : Accumulators<R, In, packing, V> {
  static constexpr size_t kSlot = k;
  using Reducer = R;
};

// The accumulators of all reductions of a program. They have one size, so that a set has no padding.
template <size_t i, class R> struct SumsAt { typename R::Sums sums; };
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
    (finish_one<R>(SumsAt<i, R>::sums, to.base[R::kSlot], line.at[R::kSlot]), ...);
  }

 private:
  template <class One> __device__ static void finish_one(const typename One::Sums& sums, const char* base, int32_t offset) {
    auto* const out = reinterpret_cast<typename One::Reducer::Out*>(const_cast<char*>(base)) + offset;
#pragma unroll
    for (int w = 0; w < One::W; ++w) One::Reducer::finish(sums.at[w], out[w], false);
  }
};
template <class... R> using SumSetOf = SumSet<std::index_sequence_for<R...>, R...>;

// The kernel's reducer, in the sense of segments.hpp. F is a function of map.hpp, whose bit k of kReduced says that output k
// is reduced.
template <class F, int U, class Slots, class Set> struct ProgramLines {
  static constexpr int N = Slots::N;
  using Sums = Set;
  using Line = Offsets<N>;
  struct Combine {
    __device__ __forceinline__ Sums operator()(const Sums& a, const Sums& b) const { return a.combined(b); }
  };

  const ProgramReduction<N>& p;

  __device__ static Sums identity() { return Sums::identity(); }
  __device__ __forceinline__ Line line(uint64_t number) const { return locate(p.kept, static_cast<uint32_t>(number)); }
  __device__ __forceinline__ Sums run(const Line& line, uint64_t begin, uint64_t end) const {
    const uint32_t step = p.segments.team.size(), last = static_cast<uint32_t>(end);
    Sums sums = identity();
    for (uint32_t first = static_cast<uint32_t>(begin) + p.segments.team.member(); first < last; first += step * U) {
      Slots slots[U];
      Offsets<N> offsets[U];
#pragma unroll
      for (int u = 0; u < U; ++u) {
        const uint32_t i = first + u * step;
        if (i >= last) continue;
        offsets[u] = locate(p.reduced, i);
#pragma unroll
        for (int k = 0; k < N; ++k) offsets[u].at[k] += line.at[k];
        slots[u].template load<F>(p.memories, offsets[u]);
      }
#pragma unroll
      for (int u = 0; u < U; ++u) {
        const uint32_t i = first + u * step;
        if (i >= last) continue;
        slots[u].compute(F());
        slots[u].template store<F>(p.memories, offsets[u]);
        sums.add(slots[u], i);
      }
    }
    return sums;
  }
  __device__ __forceinline__ void finish(const Line& line, const Sums& sums) const { sums.finish(p.memories, line); }
};

template <class F, int U, class Slots, class Set>
__device__ __forceinline__ void reduce_program(const ProgramReduction<Slots::N>& p) {
  reduce_lines(ProgramLines<F, U, Slots, Set>{p}, p.segments, reinterpret_cast<Set*>(p.partials), p.counters);
}

}  // namespace plugrad::cuda
