// One kernel for all reductions. A reducer R has: Accumulator; identity(); take(x, index), what one element is worth;
// Combine, a function of two accumulators; finish(accumulator, out), what is written.
#pragma once
#include <backends/cuda/elementwise.hpp>
#include <backends/cuda/rows.hpp>
#include <backends/cuda/team.hpp>
#include <backends/cuda/walk.hpp>

namespace plugrad::cuda {

struct Reduction {
  Walk<2> kept;     // of the input, of the output
  Walk<1> reduced;  // of the input
  Team team;
  uint64_t segment = 0, segments = 1;  // a line is cut into segments, each a block's; their results are reduced in turn
  bool is_packed = false;

  Reduction(const plugrad_view& in, const plugrad_view& out, int multiprocessors);
  uint64_t partials() const { return segments > 1 ? kept.count * segments : 0; }

 private:
  static constexpr uint64_t kBlocksEach = 8;   // blocks that keep a multiprocessor busy
  static constexpr uint64_t kLeastEach = 8;    // elements of a thread that are worth a segment
  static constexpr uint64_t kMostEach = 2048;  // and how many sums in a row stay accurate
  void cut(int pack, int multiprocessors);
};

struct ReduceGrid {
  Walk<2> kept;
  Walk<1> reduced;
  Team team;
  uint64_t segment, segments;
  uint32_t accumulates;

  explicit ReduceGrid(const Reduction& r, bool adds)
      : kept(r.kept), reduced(r.reduced), team(r.team), segment(r.segment), segments(r.segments), accumulates(adds) {}
};

// What a thread has of elements begin + member, .. end of one line, V at a time and four of these in a row.
template <class R, int V, class In>
__device__ __forceinline__ typename R::Accumulator reduce_part(const ReduceGrid& g, const In* line, uint64_t begin,
                                                               uint64_t end) {
  using Accumulator = typename R::Accumulator;
  constexpr int U = 4;
  const uint64_t step = uint64_t(g.team.size()) * V;
  Accumulator sum = R::identity();
  for (uint64_t i = begin + g.team.member() * V; i < end; i += step * U) {
    Pack<In, V> packs[U];
#pragma unroll
    for (int u = 0; u < U; ++u) {
      const uint64_t at = i + u * step;
      if (at < end)
        packs[u] =
            *reinterpret_cast<const Pack<In, V>*>(line + (V > 1 ? static_cast<int64_t>(at) : g.reduced.reach(at).at[0]));
    }
#pragma unroll
    for (int u = 0; u < U; ++u) {
      const uint64_t at = i + u * step;
      if (at >= end) continue;
      Accumulator some = R::take(packs[u].at[0], at);
#pragma unroll
      for (int j = 1; j < V; ++j) some = typename R::Combine()(some, R::take(packs[u].at[j], at + j));
      sum = typename R::Combine()(sum, some);
    }
  }
  return sum;
}

// Writes to out, or where lines are cut an accumulator for each segment to partials.
template <class R, int V, class In>
__global__ void __launch_bounds__(kBlock) reduce_kernel(const __grid_constant__ ReduceGrid g, const In* in,
                                                        typename R::Out* out, typename R::Accumulator* partials) {
  __shared__ typename R::Accumulator shared[kBlock];
  const uint64_t groups = (g.kept.count + g.team.teams() - 1) / g.team.teams(), tasks = groups * g.segments;
  for (uint64_t task = blockIdx.x; task < tasks; task += gridDim.x) {
    const uint64_t group = g.segments == 1 ? task : task / g.segments, segment = task - group * g.segments;
    const uint64_t line = group * g.team.teams() + g.team.team(), begin = segment * g.segment;
    const bool is_there = line < g.kept.count;
    Reach<2> reach{};
    typename R::Accumulator sum = R::identity();
    if (is_there) {
      reach = g.kept.reach(line);
      const uint64_t end = begin + g.segment < g.reduced.count ? begin + g.segment : g.reduced.count;
      sum = reduce_part<R, V>(g, in + reach.at[0], begin, end);
    }
    sum = g.team.reduce<typename R::Combine>(sum, shared);
    if (!is_there || g.team.member() != 0) continue;
    if (partials)
      partials[line * g.segments + segment] = sum;
    else
      R::finish(sum, out[reach.at[1]], g.accumulates);
  }
}

// The second pass: its elements are accumulators.
template <class R> struct Again : R {
  __device__ static typename R::Accumulator take(typename R::Accumulator partial, uint64_t) { return partial; }
};

template <class R, int V, class In>
void launch_reduce(const Submission& submission, const Reduction& r, bool adds, const In* in, typename R::Out* out,
                   typename R::Accumulator* partials) {
  static Occupancy occupancy;
  const ReduceGrid grid(r, adds);
  const auto kernel = reduce_kernel<R, V, In>;
  const uint64_t tasks = (r.kept.count + r.team.teams() - 1) / r.team.teams() * r.segments;
  PLUGRAD_LAUNCH(kernel, submission.blocks(kernel, tasks, occupancy), kBlock, 0, submission.handle(), grid, in, out,
                 partials);
  submission.launched();
}

// Lines of partial results, which lie side by side.
Reduction second_pass(const Reduction& first);

template <class R, class In> void reduce(const Call& call, const Submission& submission) {
  const Reduction first(call.in(0), call.out(), submission.backend().multiprocessors());
  auto* const partials = first.segments > 1 ? reinterpret_cast<typename R::Accumulator*>(call.workspace()) : nullptr;
  const In* in = data<const In>(call.in(0));
  auto* const out = data<typename R::Out>(call.out());
  const bool adds = call.accumulates();
  if (first.is_packed)
    launch_reduce<R, kPack<In>>(submission, first, adds, in, out, partials);
  else
    launch_reduce<R, 1>(submission, first, adds, in, out, partials);
  if (!partials) return;
  launch_reduce<Again<R>, 1>(submission, second_pass(first), adds, const_cast<const typename R::Accumulator*>(partials), out,
                             static_cast<typename R::Accumulator*>(nullptr));
}

template <class R> uint64_t reduce_workspace(const Call& call) {
  const Reduction first(call.in(0), call.out(), call.backend<CudaBackend>().multiprocessors());
  return first.partials() * sizeof(typename R::Accumulator);
}

template <class R, class In> constexpr KernelRow reduce_row(uint32_t opcode, uint8_t dtype, uint32_t flags = kPlainFlags) {
  return with_workspace<reduce_workspace<R>>(kernel<submit<reduce<R, In>>>(opcode, dtype, kMemoryOnly, flags));
}

}  // namespace plugrad::cuda
