// One kernel template for all reductions. A reducer R has: Accumulator; Out; kOrderIsFree, whether it accepts a line's
// elements in any order; identity(); take(x, index), which converts one element to an accumulator; Combine, a function of
// two accumulators; finish(accumulator, out, adds), which writes the result.
#pragma once
#include <backends/cuda/elementwise.hpp>
#include <backends/cuda/rows.hpp>
#include <backends/cuda/team.hpp>
#include <backends/cuda/walk.hpp>

namespace plugrad::cuda {

// How a thread reads 16 bytes at once: elements of one line (along) or the same element of adjacent lines (across), if any.
enum class Packing : uint8_t { none, along, across };

// Each team of threads reduces a line; the lines of one block's teams form a group. If there are too few groups to fill the
// device, lines are cut into segments. Each block then takes one segment of a group, and the block that finishes last
// combines the group's segments. With packs, `reduced` counts packs of elements (along) or `kept` packs of lines (across).
struct Reduction {
  Walk<2> kept;     // of the input, of the output
  Walk<1> reduced;  // of the input
  Team team;
  Packing packing = Packing::none;
  bool accumulates;
  int64_t out_step = 0;              // elements of the output from one line of a pack to the next
  uint64_t segment = 0;              // elements or packs per segment
  uint32_t segments = 1, tasks = 0;  // segments per line; tasks of all groups

  Reduction(const Call& call, bool order_is_free);
  uint64_t groups() const { return (kept.count + team.teams() - 1) / team.teams(); }
  // Intermediate results that the last block combines: one for each team of each task.
  uint64_t partials() const { return segments > 1 ? static_cast<uint64_t>(tasks) * team.teams() : 0; }

 private:
  static constexpr uint64_t kBlocksEach = 4;  // blocks per multiprocessor: at 64 bytes a thread, 64 KB are in flight
  static constexpr uint64_t kLeastEach = 4;   // elements or packs per thread below which a segment does not pay
  void pack(const plugrad_view& in);
  void cut(int multiprocessors);
};

template <class Combine> struct Each {
  template <class T, int W> __device__ Pack<T, W> operator()(const Pack<T, W>& a, const Pack<T, W>& b) const {
    Pack<T, W> all;
#pragma unroll
    for (int w = 0; w < W; ++w) all.at[w] = Combine()(a.at[w], b.at[w]);
    return all;
  }
};

// The kernel's types: V elements per pack, W accumulators per thread.
template <class R, class In, Packing packing> struct Reducing {
  static constexpr int V = packing == Packing::none ? 1 : kPack<In>, W = packing == Packing::across ? V : 1;
  static constexpr uint64_t kRun = 512;  // packs that one accumulator adds in sequence: more would lose accuracy
  using Sums = Pack<typename R::Accumulator, W>;
  // Packs of a thread on their way at once: half as many where the accumulators take the registers.
  static constexpr size_t kHeld = sizeof(typename R::Accumulator);
  static constexpr int U = V == 1 ? (kHeld > 4 ? 4 : 8) : (kHeld > 8 && V > 2 ? 2 : 4);
  // Blocks that must fit a multiprocessor. 0 leaves this to the compiler, which rather spills large sums than fit fewer.
  static constexpr int kBlocks = sizeof(Sums) > 16 ? 1 : 0;
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
  // Reduces a team member's share of a line from begin to end.
  __device__ __forceinline__ static Sums run(const Reduction& r, const In* line, uint64_t begin, uint64_t end) {
    const uint64_t step = r.team.size();
    Sums sums = identity();
    for (uint64_t i = begin + r.team.member(); i < end; i += step * U) {
      Pack<In, V> packs[U];
#pragma unroll
      for (int u = 0; u < U; ++u)
        if (i + u * step < end) packs[u] = *reinterpret_cast<const Pack<In, V>*>(line + r.reduced.reach(i + u * step).at[0]);
#pragma unroll
      for (int u = 0; u < U; ++u)
        if (i + u * step < end) add(sums, packs[u], i + u * step);
    }
    return sums;
  }
  __device__ __forceinline__ static Sums runs(const Reduction& r, const In* line, uint64_t begin, uint64_t end) {
    Sums sums = identity();
    for (const uint64_t step = kRun * r.team.size(); begin < end; begin += step)
      sums = Combine()(sums, run(r, line, begin, begin + step < end ? begin + step : end));
    return sums;
  }
};

// Returns whether this block is the last of `blocks` to arrive. The last block sees what the others wrote before they
// arrived, and resets the counter to 0 for the next kernel.
__device__ inline bool arrives_last(uint32_t* counter, uint32_t blocks) {
  __shared__ uint32_t arrived;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    arrived = atomicAdd(counter, 1u) + 1;
    if (arrived == blocks) *counter = 0;
    __threadfence();
  }
  __syncthreads();
  return arrived == blocks;
}

template <class R, Packing packing, class In, class G = Reducing<R, In, packing>>
__global__ void __launch_bounds__(kBlock, G::kBlocks)
    reduce_kernel(const __grid_constant__ Reduction r, const In* in, typename R::Out* out, typename G::Sums* partials,
                  uint32_t* counters) {
  __shared__ typename G::Sums shared[kBlock];
  for (uint32_t task = blockIdx.x; task < r.tasks; task += gridDim.x) {
    const uint32_t group = task / r.segments;
    const uint64_t line = static_cast<uint64_t>(group) * r.team.teams() + r.team.team(),
                   begin = (task - group * r.segments) * r.segment;
    const uint64_t end = begin + r.segment < r.reduced.count ? begin + r.segment : r.reduced.count;
    const bool is_there = line < r.kept.count;
    const Reach<2> reach = is_there ? r.kept.reach(line) : Reach<2>{};
    typename G::Sums sums = is_there ? G::runs(r, in + reach.at[0], begin, end) : G::identity();
    sums = r.team.reduce<typename G::Combine>(sums, shared);
    const bool writes = is_there && r.team.member() == 0;
    if (r.segments > 1) {
      if (writes) partials[task * r.team.teams() + r.team.team()] = sums;
      if (!arrives_last(counters + group, r.segments)) continue;
      sums = G::identity();
#pragma unroll 4
      for (uint32_t s = r.team.member(); is_there && s < r.segments;
           s += r.team.size())  // in order of segments, whichever block came last
        sums = typename G::Combine()(sums, partials[(group * r.segments + s) * r.team.teams() + r.team.team()]);
      sums = r.team.reduce<typename G::Combine>(sums, shared);
    }
#pragma unroll
    for (int w = 0; w < G::W; ++w)
      if (writes) R::finish(sums.at[w], out[reach.at[1] + w * r.out_step], r.accumulates);
  }
}

template <class R, Packing packing, class In>
void launch_reduce(const Call& call, const Submission& submission, const Reduction& r) {
  static Occupancy occupancy;
  using Sums = typename Reducing<R, In, packing>::Sums;
  const auto kernel = reduce_kernel<R, packing, In>;
  auto* const partials = r.segments > 1 ? reinterpret_cast<Sums*>(call.workspace()) : nullptr;
  PLUGRAD_LAUNCH(kernel, submission.blocks(kernel, r.tasks, occupancy), kBlock, 0, submission.handle(), r,
                 data<const In>(call.in(0)), data<typename R::Out>(call.out()), partials, submission.stream().counters());
  submission.launched();
}

template <class R, class In> void reduce(const Call& call, const Submission& submission) {
  const Reduction r(call, R::kOrderIsFree);
  switch (r.packing) {
    case Packing::none: return launch_reduce<R, Packing::none, In>(call, submission, r);
    case Packing::along: return launch_reduce<R, Packing::along, In>(call, submission, r);
    case Packing::across: return launch_reduce<R, Packing::across, In>(call, submission, r);
  }
}

template <class R, class In> uint64_t reduce_workspace(const Call& call) {
  const Reduction r(call, R::kOrderIsFree);
  const uint64_t sums = r.packing == Packing::across ? kPack<In> : 1;
  return r.partials() * sums * sizeof(typename R::Accumulator);
}

template <class R, class In> constexpr KernelRow reduce_row(uint32_t opcode, uint8_t dtype, uint32_t flags = kPlainFlags) {
  return with_workspace<reduce_workspace<R, In>>(kernel<submit<reduce<R, In>>>(opcode, dtype, kMemoryOnly, flags));
}

}  // namespace plugrad::cuda
