// One kernel template for all elementwise ops: map.hpp has the code of its threads.
#pragma once
#include <backends/cuda/map.hpp>
#include <backends/cuda/submission.hpp>

#include <plugrad/sdk/box.hpp>

#include <algorithm>
#include <utility>

namespace plugrad::cuda {

// The most elements of one launch, and the largest offset of an element from its operand's first element: kernels use 32-bit
// indices. A test build sets a low value, and so cuts every larger op.
#ifndef PLUGRAD_CUDA_SPAN
#define PLUGRAD_CUDA_SPAN (1 << 30)
#endif
inline constexpr int64_t kSpan = PLUGRAD_CUDA_SPAN;

template <class F, int V, int U, class... T>
__global__ void __launch_bounds__(kBlock) map_kernel(const __grid_constant__ Grid<sizeof...(T)> grid, const F f) {
  map_all<F, V, U, T...>(grid, f);
}

// Whether all operands of a box can be read and written in packs.
template <int N> bool has_packs(const BoxOf<N>& box, int pack) {
  const bool is_line = box.rank == 1;
  if (box.extent[0] < pack || (!is_line && box.extent[0] % pack)) return false;
  for (int k = 0; k < box.operands; ++k) {
    const BoxOperand& operand = box.operand[k];
    if (!operand.base || (k > 0 && box.stride[k][0] == 0)) continue;  // one element serves the whole pack
    if (box.stride[k][0] != 1 || reinterpret_cast<uintptr_t>(operand.base) % (pack * operand.size)) return false;
    for (int d = 1; d < box.rank; ++d)
      if (box.stride[k][d] % pack) return false;
  }
  return true;
}

template <int N, int M> Grid<N> grid_of(const BoxOf<M>& box, int pack) {
  Grid<N> grid;
  const int64_t packs = box.extent[0] / pack;
  grid.count = static_cast<uint32_t>(box.count() / box.extent[0] * packs);
  grid.tail = static_cast<uint32_t>(box.rank == 1 ? box.extent[0] % pack : 0);
  Axes<N>& axes = grid.axes;
  axes.rank = static_cast<uint32_t>(box.rank);
  for (int d = 0; d < box.rank; ++d) {
    if (d + 1 < box.rank) axes.extent[d] = Divider(static_cast<uint32_t>(d ? box.extent[d] : packs));
    for (int k = 0; k < box.operands; ++k) axes.stride[k][d] = static_cast<int32_t>(box.stride[k][d] * (d ? 1 : pack));
  }
  Memories<N>& memories = grid.memories;
  memories.vectors = 0;
  for (int k = 0; k < box.operands; ++k) {
    memories.base[k] = box.operand[k].base;
    memories.value[k] = box.operand[k].value;
    memories.vectors |= static_cast<uint32_t>(box.stride[k][0] == 1 && memories.base[k]) << k;
  }
  return grid;
}

// Long functions keep the device busy with one pack per thread; a second pack would not fit into the registers.
template <class F> inline constexpr bool kIsHeavy = requires { requires F::kHeavy; };

template <class F, int V, class... T> void launch_map(const Submission& submission, const Box& box, const F& f) {
  constexpr int U = kIsHeavy<F> || sizeof...(T) > 4 ? 1 : V == 1 ? 4 : 2;
  const Grid<sizeof...(T)> grid = grid_of<sizeof...(T)>(box, V);
  const auto kernel = map_kernel<F, V, U, T...>;
  PLUGRAD_LAUNCH(kernel, map_blocks(grid.count, kBlock * U), kBlock, 0, submission.handle(), grid, f);
  submission.launched();
}

// Functions whose threads have registers for only one element.
template <class F> inline constexpr bool kIsAlone = requires { requires F::kAlone; };
// Sixteen bytes of the largest type, and no more than 8 elements.
template <class... T> inline constexpr int kPack = std::min<int>(8, 16 / std::max({sizeof(T)...}));

template <class F, class... T> void map_box(const Submission& submission, const Box& box, const F& f) {
  constexpr int V = kIsAlone<F> ? 1 : kPack<T...>;
  box.cut(kSpan, [&](const Box& part) {
    if (has_packs(part, V)) launch_map<F, V, T...>(submission, part, f);
    else launch_map<F, 1, T...>(submission, part, f);
  });
}

// The run function of an elementwise op: F applied to operands of types T, outputs first.
template <class F, class... T> void map(const Call& call, const Submission& submission) {
  map_box<F, T...>(submission, Box(call.op().views, sizeof...(T)), F());
}

// The type for moving elements: an unsigned integer of equal size, because moving a float could change a NaN's payload.
template <size_t size> struct BitsOf;
template <> struct BitsOf<1> {
  using type = uint8_t;
};
template <> struct BitsOf<2> {
  using type = uint16_t;
};
template <> struct BitsOf<4> {
  using type = uint32_t;
};
template <> struct BitsOf<8> {
  using type = uint64_t;
};
template <class T> using Bits = typename BitsOf<sizeof(T)>::type;

// A function of one output: Op()(inputs...).
template <class Op, bool heavy = false, bool alone = false> struct Pure {
  static constexpr int kOutputs = 1;
  static constexpr bool kInOut = false, kHeavy = heavy, kAlone = alone;
  template <class Out, class... In> __device__ __forceinline__ void operator()(Out& out, const In&... in) const {
    out = static_cast<Out>(Op()(widened(in)...));
  }
};

}  // namespace plugrad::cuda
