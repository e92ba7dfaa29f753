// One kernel template for all reductions: reducers.hpp has the reducers, segments.hpp divides the work among threads.
#pragma once
#include <backends/cuda/elementwise.hpp>
#include <backends/cuda/reducers.hpp>
#include <backends/cuda/rows.hpp>
#include <backends/cuda/segments.hpp>
#include <backends/cuda/walk.hpp>

namespace plugrad::cuda {

// The lines of an op, and where they are. With packs, a line's length counts packs of elements (along), or there are as many
// lines as packs of lines (across).
struct Reduction {
  Walk<2> kept;     // of the input, of the output
  Walk<1> reduced;  // of the input
  Segments segments;
  Packing packing = Packing::none;
  bool accumulates;
  int64_t out_step = 0;  // elements of the output between neighbouring lines of a pack

  Reduction(const plugrad_view& in, const plugrad_view& out, bool order_is_free, int multiprocessors);
  Reduction(const Call& call, bool order_is_free);

 private:
  void pack(const plugrad_view& in);
};

// The kernel's reducer, in the sense of segments.hpp.
template <class R, class In, Packing packing> struct OperandLines {
  static constexpr int V = packing == Packing::none ? 1 : kPack<In>;
  using Terms = Accumulators<R, In, packing, V>;
  using Sums = typename Terms::Sums;
  using Combine = typename Terms::Combine;
  struct Line {
    const In* in;
    typename R::Out* out;
  };
  // Packs of a thread on their way at once: half as many where the accumulators take the registers.
  static constexpr size_t kHeld = sizeof(typename R::Accumulator);
  static constexpr int U = V == 1 ? (kHeld > 4 ? 4 : 8) : (kHeld > 8 && V > 2 ? 2 : 4);
  // The least number of blocks per multiprocessor. 0 leaves the number to the compiler: it rather spills large sums than
  // fits fewer blocks.
  static constexpr int kBlocks = sizeof(Sums) > 16 ? 1 : 0;

  const Reduction& r;
  const In* in;
  typename R::Out* out;

  __device__ static Sums identity() { return Terms::identity(); }
  __device__ __forceinline__ Line line(uint64_t number) const {
    const Reach<2> reach = r.kept.reach(number);
    return {in + reach.at[0], out + reach.at[1]};
  }
  __device__ __forceinline__ Sums run(const Line& line, uint64_t begin, uint64_t end) const {
    const uint64_t step = r.segments.team.size();
    Sums sums = identity();
    for (uint64_t i = begin + r.segments.team.member(); i < end; i += step * U) {
      Pack<In, V> packs[U];
#pragma unroll
      for (int u = 0; u < U; ++u)
        if (i + u * step < end)
          packs[u] = *reinterpret_cast<const Pack<In, V>*>(line.in + r.reduced.reach(i + u * step).at[0]);
#pragma unroll
      for (int u = 0; u < U; ++u)
        if (i + u * step < end) Terms::add(sums, packs[u], i + u * step);
    }
    return sums;
  }
  __device__ __forceinline__ void finish(const Line& line, const Sums& sums) const {
#pragma unroll
    for (int w = 0; w < Terms::W; ++w) R::finish(sums.at[w], line.out[w * r.out_step], r.accumulates);
  }
};

template <class R, Packing packing, class In, class G = OperandLines<R, In, packing>>
__global__ void __launch_bounds__(kBlock, G::kBlocks)
    reduce_kernel(const __grid_constant__ Reduction r, const In* in, typename R::Out* out, typename G::Sums* partials,
                  uint32_t* counters) {
  reduce_lines(G{r, in, out}, r.segments, partials, counters);
}

template <class R, Packing packing, class In>
void launch_reduce(const Call& call, const Submission& submission, const Reduction& r) {
  static Occupancy occupancy;
  using Sums = typename OperandLines<R, In, packing>::Sums;
  const auto kernel = reduce_kernel<R, packing, In>;
  auto* const partials = r.segments.per_line > 1 ? reinterpret_cast<Sums*>(call.workspace()) : nullptr;
  PLUGRAD_LAUNCH(kernel, submission.blocks(kernel, r.segments.tasks, occupancy), kBlock, 0, submission.handle(), r,
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
  return r.segments.partials() * sums * sizeof(typename R::Accumulator);
}

template <class R, class In> constexpr KernelRow reduce_row(uint32_t opcode, uint8_t dtype, uint32_t flags = kPlainFlags) {
  return with_workspace<reduce_workspace<R, In>>(kernel<submit<reduce<R, In>>>(opcode, dtype, kMemoryOnly, flags));
}

}  // namespace plugrad::cuda
