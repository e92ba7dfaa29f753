// One kernel template for all elementwise ops: it applies a function to one element of each operand, of any types.
// The function takes references, outputs first. It writes the outputs, and with kInOut it reads them too.
#pragma once
#include <backends/cuda/submission.hpp>

#include <plugrad/sdk/box.hpp>
#include <plugrad/sdk/divider.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace plugrad::cuda {

// The most elements that one launch visits, and the largest offset of an element from its operand's first, so that kernels
// can use 32-bit indices. A test build sets it low, which cuts every larger op.
#ifndef PLUGRAD_CUDA_SPAN
#define PLUGRAD_CUDA_SPAN (1 << 30)
#endif
inline constexpr int64_t kSpan = PLUGRAD_CUDA_SPAN;

template <class T, int V> struct alignas(sizeof(T) * V) Pack { T at[V]; };

// A narrow box in a kernel's form: along the innermost axis it counts packs of V elements.
template <int N> struct Grid {
  uint32_t count;  // packs
  uint32_t tail;   // elements after the last pack; nonzero only if rank is 1
  uint32_t rank;
  uint32_t vectors;  // bit k: operand k's packs are contiguous; otherwise a pack repeats one element
  Divider extent[PLUGRAD_MAX_RANK];
  int32_t stride[N][PLUGRAD_MAX_RANK];  // elements
  const char* base[N];
  uint64_t value[N];
};

template <int N> struct Offsets { int32_t at[N]; };

template <int N> __device__ __forceinline__ Offsets<N> locate(const Grid<N>& grid, uint32_t i) {
  Offsets<N> offsets{};
  const int last = static_cast<int>(grid.rank) - 1;
#pragma unroll 1
  for (int d = 0; d < last; ++d) {
    const uint32_t above = grid.extent[d].quotient(i), inside = i - above * grid.extent[d].divisor;
#pragma unroll
    for (int k = 0; k < N; ++k) offsets.at[k] += static_cast<int32_t>(inside) * grid.stride[k][d];
    i = above;
  }
#pragma unroll
  for (int k = 0; k < N; ++k) offsets.at[k] += static_cast<int32_t>(i) * grid.stride[k][last];
  return offsets;
}

// One pack of operand k, in registers.
template <size_t k, class T, int V> struct Slot {
  Pack<T, V> pack;

  template <int N> __device__ __forceinline__ void load(const Grid<N>& grid, int32_t offset) {
    const T* p = reinterpret_cast<const T*>(grid.base[k]);
    if (!p) {
      T value;
      memcpy(&value, &grid.value[k], sizeof value);
      fill(value);
    } else if (V == 1 || grid.vectors >> k & 1) {
      pack = *reinterpret_cast<const Pack<T, V>*>(p + offset);
    } else {
      fill(p[offset]);
    }
  }
  template <int N> __device__ __forceinline__ void store(const Grid<N>& grid, int32_t offset) const {
    *reinterpret_cast<Pack<T, V>*>(reinterpret_cast<T*>(const_cast<char*>(grid.base[k])) + offset) = pack;
  }
  __device__ __forceinline__ void fill(T value) {
#pragma unroll
    for (int j = 0; j < V; ++j) pack.at[j] = value;
  }
};

template <class Numbers, int V, class... T> struct Slots;
template <size_t... k, int V, class... T> struct Slots<std::index_sequence<k...>, V, T...> : Slot<k, T, V>... {
  static constexpr int N = sizeof...(T);

  template <class F> __device__ __forceinline__ void load(const Grid<N>& grid, const Offsets<N>& offsets) {
    (load_one<F, k, T>(grid, offsets), ...);
  }
  template <class F> __device__ __forceinline__ void compute(const F& f) {
#pragma unroll
    for (int j = 0; j < V; ++j) f(static_cast<Slot<k, T, V>&>(*this).pack.at[j]...);
  }
  template <class F> __device__ __forceinline__ void store(const Grid<N>& grid, const Offsets<N>& offsets) const {
    (store_one<F, k, T>(grid, offsets), ...);
  }

 private:
  template <class F, size_t i, class U>
  __device__ __forceinline__ void load_one(const Grid<N>& grid, const Offsets<N>& offsets) {
    if constexpr (F::kInOut || i >= F::kOutputs) static_cast<Slot<i, U, V>&>(*this).load(grid, offsets.at[i]);
  }
  template <class F, size_t i, class U>
  __device__ __forceinline__ void store_one(const Grid<N>& grid, const Offsets<N>& offsets) const {
    if constexpr (i < F::kOutputs) static_cast<const Slot<i, U, V>&>(*this).store(grid, offsets.at[i]);
  }
};
template <int V, class... T> using SlotsOf = Slots<std::index_sequence_for<T...>, V, T...>;

// Computes the elements after the last pack of dense operands, one per thread.
template <class F, int V, class... T> __device__ __forceinline__ void map_tail(const Grid<sizeof...(T)>& grid, const F& f) {
  constexpr int N = sizeof...(T);
  if (blockIdx.x != 0 || threadIdx.x >= grid.tail) return;
  Offsets<N> offsets;
#pragma unroll
  for (int k = 0; k < N; ++k) offsets.at[k] = grid.vectors >> k & 1 ? static_cast<int32_t>(grid.count * V + threadIdx.x) : 0;
  SlotsOf<1, T...> slots;
  slots.template load<F>(grid, offsets);
  slots.compute(f);
  slots.template store<F>(grid, offsets);
}

// Each thread loads U packs before it writes any: the loads overlap, and an output may alias an input.
template <class F, int V, int U, class... T>
__global__ void __launch_bounds__(kBlock) map_kernel(const __grid_constant__ Grid<sizeof...(T)> grid, const F f) {
  constexpr uint32_t kTile = kBlock * U;
  constexpr int N = sizeof...(T);
  for (uint32_t first = blockIdx.x * kTile; first < grid.count; first += gridDim.x * kTile) {
    SlotsOf<V, T...> slots[U];
    Offsets<N> offsets[U];
#pragma unroll
    for (int u = 0; u < U; ++u) {
      const uint32_t i = first + u * kBlock + threadIdx.x;
      if (i >= grid.count) continue;
      offsets[u] = locate(grid, i);
      slots[u].template load<F>(grid, offsets[u]);
    }
#pragma unroll
    for (int u = 0; u < U; ++u) {
      if (first + u * kBlock + threadIdx.x >= grid.count) continue;
      slots[u].compute(f);
      slots[u].template store<F>(grid, offsets[u]);
    }
  }
  if constexpr (V > 1) map_tail<F, V, T...>(grid, f);
}

// Whether all operands of a box can be read and written in packs of V.
template <int V> bool has_packs(const Box& box) {
  const bool is_line = box.rank == 1;
  if (!is_line && box.extent[0] % V) return false;
  for (int k = 0; k < box.operands; ++k) {
    const Box::Operand& operand = box.operand[k];
    if (!operand.base || (k > 0 && box.stride[k][0] == 0)) continue;  // one element serves the whole pack
    if (box.stride[k][0] != 1 || reinterpret_cast<uintptr_t>(operand.base) % (V * operand.size)) return false;
    for (int d = 1; d < box.rank; ++d)
      if (box.stride[k][d] % V) return false;
  }
  return true;
}

template <int V, int N> Grid<N> grid_of(const Box& box) {
  Grid<N> grid;
  const int64_t packs = box.extent[0] / V;
  grid.count = static_cast<uint32_t>(box.count() / box.extent[0] * packs);
  grid.tail = static_cast<uint32_t>(box.rank == 1 ? box.extent[0] % V : 0);
  grid.rank = static_cast<uint32_t>(box.rank);
  grid.vectors = 0;
  for (int d = 0; d < box.rank; ++d) {
    if (d + 1 < box.rank) grid.extent[d] = Divider(static_cast<uint32_t>(d ? box.extent[d] : packs));
    for (int k = 0; k < N; ++k) grid.stride[k][d] = static_cast<int32_t>(box.stride[k][d] * (d ? 1 : V));
  }
  for (int k = 0; k < N; ++k) {
    grid.base[k] = box.operand[k].base;
    grid.value[k] = box.operand[k].value;
    grid.vectors |= static_cast<uint32_t>(box.stride[k][0] == 1 && grid.base[k]) << k;
  }
  return grid;
}

// Long functions keep the device busy with one pack per thread; a second pack would not fit into the registers.
template <class F> inline constexpr bool kIsHeavy = requires { requires F::kHeavy; };

template <class F, int V, class... T> void launch_map(const Submission& submission, const Box& box, const F& f) {
  constexpr int U = kIsHeavy<F> || sizeof...(T) > 4 ? 1 : V == 1 ? 4 : 2;
  static Occupancy occupancy;
  const Grid<sizeof...(T)> grid = grid_of<V, sizeof...(T)>(box);
  const auto kernel = map_kernel<F, V, U, T...>;
  const uint64_t tiles = std::max<uint64_t>(1, (grid.count + kBlock * U - 1) / (kBlock * U));
  PLUGRAD_LAUNCH(kernel, submission.blocks(kernel, tiles, occupancy), kBlock, 0, submission.handle(), grid, f);
  submission.launched();
}

// Functions of which a thread has registers for one element only.
template <class F> inline constexpr bool kIsAlone = requires { requires F::kAlone; };
// Sixteen bytes of the largest type, and no more than 8 elements.
template <class... T> inline constexpr int kPack = std::min<int>(8, 16 / std::max({sizeof(T)...}));

template <class F, class... T> void map_box(const Submission& submission, const Box& box, const F& f) {
  constexpr int V = kIsAlone<F> ? 1 : kPack<T...>;
  box.cut(kSpan, [&](const Box& part) {
    if (has_packs<V>(part) && part.extent[0] >= V)
      launch_map<F, V, T...>(submission, part, f);
    else
      launch_map<F, 1, T...>(submission, part, f);
  });
}

// The run function of an elementwise op: F applied to operands of types T, outputs first.
template <class F, class... T> void map(const Call& call, const Submission& submission) {
  map_box<F, T...>(submission, Box(call.op().views, sizeof...(T)), F());
}

// For elements that are only moved: an unsigned integer of equal size, because moving a float could change a NaN's payload.
template <size_t size> struct BitsOf;
template <> struct BitsOf<1> { using type = uint8_t; };
template <> struct BitsOf<2> { using type = uint16_t; };
template <> struct BitsOf<4> { using type = uint32_t; };
template <> struct BitsOf<8> { using type = uint64_t; };
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
