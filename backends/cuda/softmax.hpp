// Lines along an axis, loaded into the registers of a team of threads, and the log-sum-exp of a line.
#pragma once
#include <backends/cuda/accumulator.hpp>
#include <backends/cuda/elementwise.hpp>
#include <backends/cuda/functions.hpp>
#include <backends/cuda/team.hpp>
#include <backends/cuda/walk.hpp>

namespace plugrad::cuda {

// A thread's elements of one operand: 64 bytes, loaded at once.
template <class T> inline constexpr int kHeld = 64 / sizeof(T);

// Lines of N operands along one axis. An operand without this (last) axis has one element per line.
template <int N> struct Lines {
  Walk<N> walk;  // the first elements of the lines
  int64_t length;
  int64_t stride[N];  // along the line
  Team team;
  bool is_packed;  // every line consists of whole aligned packs of 16 bytes

  // Covers the first view's shape.
  Lines(const plugrad_view* const (&views)[N], int axis) : length(views[0]->shape[axis]) {
    const auto strides_along = [&](int d, int64_t(&strides)[N]) {
      for (int k = 0; k < N; ++k) strides[k] = is_immediate(*views[k]) || d >= views[k]->rank ? 0 : stride_of(*views[k], d);
    };
    for (int d = views[0]->rank - 1; d >= 0; --d) {
      int64_t strides[N];
      strides_along(d, strides);
      if (d != axis) walk.add(views[0]->shape[d], strides);
    }
    walk.close();
    strides_along(axis, stride);
    const auto size = static_cast<int64_t>(element_size(views[0]->dtype));
    is_packed = true;
    for (int k = 0; k < N; ++k) is_packed &= has_packs(*views[k], axis, k, std::min<int64_t>(8, 16 / size));
    const bool is_contiguous = walk.rank == 0 || distance(stride[0]) < distance(walk.innermost_stride(0));
    team = choose_team(walk.count, static_cast<uint64_t>(length), is_contiguous,
                       is_packed ? static_cast<uint64_t>(64 / size) : kWorthAThread);
  }
  __host__ __device__ uint64_t groups() const { return (walk.count + team.teams() - 1) / team.teams(); }

 private:
  bool has_packs(const plugrad_view& view, int axis, int k, int64_t each) const {
    if (is_immediate(view) || axis >= view.rank) return true;
    return stride[k] == 1 && length % each == 0 && reinterpret_cast<uintptr_t>(data<char>(view)) % 16 == 0 &&
           std::all_of(walk.stride[k], walk.stride[k] + walk.rank, [&](int64_t s) { return s % each == 0; });
  }
};

// The part of a line of n elements processed by a team at once, from element `from` on: each member takes packs of V.
template <class T, int V> struct Turn {
  static constexpr int kPacks = kHeld<T> / V;
  const Team& team;
  int64_t from;
  uint32_t end;  // elements in this turn; a place counts from the first of them

  __device__ Turn(const Team& t, int64_t first, int64_t n)
      : team(t), from(first), end(static_cast<uint32_t>(n - first < length(t) ? n - first : length(t))) {}
  __device__ static int64_t length(const Team& team) { return static_cast<int64_t>(team.size()) * kHeld<T>; }

  // Calls f(p, place) for this member's packs.
  template <class F> __device__ __forceinline__ void each_pack(F f) const {
#pragma unroll
    for (int p = 0; p < kPacks; ++p)
      if (const uint32_t place = (static_cast<uint32_t>(p) * team.size() + team.member()) * V; place < end) f(p, place);
  }
  // Calls f(k, place) for this member's elements; element k is in its register k.
  template <class F> __device__ __forceinline__ void each(F f) const {
    each_pack([&](int p, uint32_t place) {
#pragma unroll
      for (int j = 0; j < V; ++j) f(p * V + j, place + static_cast<uint32_t>(j));
    });
  }
};

// A thread's elements of one operand in a turn.
template <class T, int V> struct Held {
  Pack<T, V> packs[kHeld<T> / V];

  __device__ __forceinline__ T& operator[](int k) { return packs[k / V].at[k % V]; }

  __device__ __forceinline__ void load(const Turn<T, V>& turn, const Input<T>& in, int64_t line, int64_t stride) {
    const T* const first = in.base + (in.base ? line + turn.from * stride : 0);
    turn.each_pack([&](int p, uint32_t place) {
      if (in.base) packs[p] = *reinterpret_cast<const Pack<T, V>*>(first + (V > 1 ? place : place * stride));
      else
        for (T& element : packs[p].at) element = in.value;
    });
  }
  __device__ __forceinline__ void store(const Turn<T, V>& turn, T* line, int64_t stride) const {
    T* const first = line + turn.from * stride;
    turn.each_pack(
        [&](int p, uint32_t place) { *reinterpret_cast<Pack<T, V>*>(first + (V > 1 ? place : place * stride)) = packs[p]; });
  }
};

// The largest of some elements, and the sum of e^(x - largest). Without elements, or if all are -inf: -inf and 0.
template <class A> struct Exponentials {
  A largest, sum;
};

struct Together {
  template <class A> __device__ Exponentials<A> operator()(const Exponentials<A>& a, const Exponentials<A>& b) const {
    if (a.largest == b.largest) return {a.largest, a.sum + b.sum};
    if (a.largest > b.largest) return {a.largest, a.sum + b.sum * std::exp(b.largest - a.largest)};
    return {b.largest, b.sum + a.sum * std::exp(a.largest - b.largest)};
  }
};

// The sum is NaN if an element is NaN or +inf, because +inf - +inf is NaN.
template <class T, int V> __device__ __forceinline__ auto exponentials(const Turn<T, V>& turn, Held<T, V>& held) {
  using A = AccumulatorOf<T>;
  Exponentials<A> e{kBottom<A>, 0};
  turn.each([&](int k, uint32_t) {
    const auto x = static_cast<A>(held[k]);
    e.largest = x > e.largest ? x : e.largest;
  });
  turn.each([&](int k, uint32_t) {
    const auto x = static_cast<A>(held[k]);
    if (x != kBottom<A>) e.sum += std::exp(x - e.largest);
  });
  return e;
}

// Returns the result for a whole line to each member of the team; `held` keeps the last turn. All threads of the block must
// call this; n is 0 for a team without a line.
template <class T, int V, class A>
__device__ __forceinline__ Exponentials<A> exponentials(const Team& team, const Input<T>& x, int64_t line, int64_t stride,
                                                        int64_t n, Held<T, V>& held, Exponentials<A>* shared) {
  Exponentials<A> e{kBottom<A>, 0};
  for (int64_t from = 0; from < n; from += Turn<T, V>::length(team)) {
    const Turn<T, V> turn(team, from, n);
    held.load(turn, x, line, stride);
    e = Together()(e, exponentials(turn, held));
  }
  return team.reduce<Together>(e, shared);
}

// Launches kernel_of(V), the kernel for packs of V elements; V is 1 unless the lines are packed.
template <class T, int N, class KernelOf, class... Arguments>
void launch_lines(const Submission& submission, const Lines<N>& lines, KernelOf kernel_of, const Arguments&... arguments) {
  const auto launch = [&](auto packs) {
    static Occupancy occupancy;
    const auto kernel = kernel_of(packs);
    PLUGRAD_LAUNCH(kernel, submission.blocks(kernel, lines.groups(), occupancy), kBlock, 0, submission.handle(), lines,
                   arguments...);
    submission.launched();
  };
  if (lines.is_packed) launch(std::integral_constant<int, kPack<T>>());
  else launch(std::integral_constant<int, 1>());
}

}  // namespace plugrad::cuda
