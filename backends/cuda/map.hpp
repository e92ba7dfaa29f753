// The work of a thread of an elementwise kernel: it applies a function to one element of each operand, of any types. The
// plugin's kernels include this file, and so do kernels compiled for fusions at run time: see fusion_source.hpp. The
// function takes references, outputs first. It writes the outputs, and with kInOut it reads them too.
#pragma once
#include <cuda_runtime.h>
#include <plugrad/sdk/abi.h>
#include <plugrad/sdk/divider.hpp>

#include <cstdint>
#include <cstring>
#include <utility>

namespace plugrad::cuda {

inline constexpr int kBlock = 256;  // threads of a block

// Returns the number of blocks of a launch of map_all for tiles of `tile` packs; at least one block, for the tail.
inline unsigned map_blocks(uint32_t packs, uint32_t tile) { return packs ? (packs - 1) / tile + 1 : 1; }

template <class T, int V> struct alignas(sizeof(T) * V) Pack {
  T at[V];
};

// Shared axes of N operands, the innermost first. No offset is beyond 32 bits.
template <int N> struct Axes {
  uint32_t rank;
  Divider extent[PLUGRAD_MAX_RANK];     // but of the last axis
  int32_t stride[N][PLUGRAD_MAX_RANK];  // elements
};

template <int N> struct Offsets {
  int32_t at[N];
};

template <int N> __device__ __forceinline__ Offsets<N> locate(const Axes<N>& axes, uint32_t i) {
  Offsets<N> offsets{};
  const int last = static_cast<int>(axes.rank) - 1;
#pragma unroll 1
  for (int d = 0; d < last; ++d) {
    const uint32_t above = axes.extent[d].quotient(i), inside = i - above * axes.extent[d].divisor;
#pragma unroll
    for (int k = 0; k < N; ++k) offsets.at[k] += static_cast<int32_t>(inside) * axes.stride[k][d];
    i = above;
  }
#pragma unroll
  for (int k = 0; k < N; ++k) offsets.at[k] += static_cast<int32_t>(i) * axes.stride[k][last];
  return offsets;
}

// The memories of packs. Bit k of vectors: operand k's packs are contiguous; otherwise a pack repeats one element.
template <int N> struct Memories {
  const char* base[N];  // null: an immediate
  uint64_t value[N];    // of an immediate
  uint32_t vectors;
};

// A narrow box in a kernel's form: along the innermost axis it counts packs of V elements.
template <int N> struct Grid {
  Memories<N> memories;
  uint32_t count;  // packs
  uint32_t tail;   // elements after the last pack; nonzero only if rank is 1
  Axes<N> axes;
};

// One pack of operand k, in registers.
template <size_t k, class T, int V> struct Slot {
  Pack<T, V> pack;

  template <int N> __device__ __forceinline__ void load(const Memories<N>& from, int32_t offset) {
    const T* p = reinterpret_cast<const T*>(from.base[k]);
    if (!p) {
      T value;
      memcpy(&value, &from.value[k], sizeof value);
      fill(value);
    } else if (V == 1 || from.vectors >> k & 1) {
      pack = *reinterpret_cast<const Pack<T, V>*>(p + offset);
    } else {
      fill(p[offset]);
    }
  }
  template <int N> __device__ __forceinline__ void store(const Memories<N>& to, int32_t offset) const {
    *reinterpret_cast<Pack<T, V>*>(reinterpret_cast<T*>(const_cast<char*>(to.base[k])) + offset) = pack;
  }
  __device__ __forceinline__ void fill(T value) {
#pragma unroll
    for (int j = 0; j < V; ++j) pack.at[j] = value;
  }
};

// Bit k: output k of a function is stored.
template <class F> inline constexpr uint32_t kStoredOf = ~uint32_t{0};
template <class F>
  requires requires { F::kStored; }
inline constexpr uint32_t kStoredOf<F> = F::kStored;
// The outputs and inputs of a function. Operands beyond them are neither read nor written.
template <class F> inline constexpr size_t kOperandsOf = ~size_t{0};
template <class F>
  requires requires { F::kOperands; }
inline constexpr size_t kOperandsOf<F> = F::kOperands;

template <class Numbers, int V, class... T> struct Slots;
template <size_t... k, int V, class... T> struct Slots<std::index_sequence<k...>, V, T...> : Slot<k, T, V>... {
  static constexpr int N = sizeof...(T);

  template <class F> __device__ __forceinline__ void load(const Memories<N>& from, const Offsets<N>& offsets) {
    (load_one<F, k, T>(from, offsets), ...);
  }
  template <class F> __device__ __forceinline__ void compute(const F& f) {
#pragma unroll
    for (int j = 0; j < V; ++j) f(static_cast<Slot<k, T, V>&>(*this).pack.at[j]...);
  }
  template <class F> __device__ __forceinline__ void store(const Memories<N>& to, const Offsets<N>& offsets) const {
    (store_one<F, k, T>(to, offsets), ...);
  }
  template <size_t i> __device__ __forceinline__ const auto& slot() const { return slot_of<i>(*this); }

 private:
  template <size_t i, class U> __device__ __forceinline__ static const Slot<i, U, V>& slot_of(const Slot<i, U, V>& one) {
    return one;
  }
  template <class F, size_t i, class U>
  __device__ __forceinline__ void load_one(const Memories<N>& from, const Offsets<N>& offsets) {
    if constexpr ((F::kInOut || i >= F::kOutputs) && i < kOperandsOf<F>)
      static_cast<Slot<i, U, V>&>(*this).load(from, offsets.at[i]);
  }
  template <class F, size_t i, class U>
  __device__ __forceinline__ void store_one(const Memories<N>& to, const Offsets<N>& offsets) const {
    if constexpr (i < F::kOutputs && (kStoredOf<F> >> i & 1))
      static_cast<const Slot<i, U, V>&>(*this).store(to, offsets.at[i]);
  }
};
template <int V, class... T> using SlotsOf = Slots<std::index_sequence_for<T...>, V, T...>;

// Computes the elements after the last pack of dense operands, one per thread.
template <class F, int V, class... T> __device__ __forceinline__ void map_tail(const Grid<sizeof...(T)>& grid, const F& f) {
  constexpr int N = sizeof...(T);
  if (blockIdx.x != 0 || threadIdx.x >= grid.tail) return;
  Offsets<N> offsets;
#pragma unroll
  for (int k = 0; k < N; ++k)
    offsets.at[k] = grid.memories.vectors >> k & 1 ? static_cast<int32_t>(grid.count * V + threadIdx.x) : 0;
  SlotsOf<1, T...> slots;
  slots.template load<F>(grid.memories, offsets);
  slots.compute(f);
  slots.template store<F>(grid.memories, offsets);
}

// A block computes a tile: on an H100, blocks looping over tiles reach 95 % of the bandwidth. Each thread loads U packs
// before it writes any: the loads overlap, and an output may alias an input.
template <class F, int V, int U, class... T>
__device__ __forceinline__ void map_all(const Grid<sizeof...(T)>& grid, const F& f) {
  constexpr int N = sizeof...(T);
  const uint32_t first = blockIdx.x * (kBlock * U) + threadIdx.x;
  SlotsOf<V, T...> slots[U];
  Offsets<N> offsets[U];
#pragma unroll
  for (int u = 0; u < U; ++u) {
    const uint32_t i = first + u * kBlock;
    if (i >= grid.count) continue;
    offsets[u] = locate(grid.axes, i);
    slots[u].template load<F>(grid.memories, offsets[u]);
  }
#pragma unroll
  for (int u = 0; u < U; ++u) {
    if (first + u * kBlock >= grid.count) continue;
    slots[u].compute(f);
    slots[u].template store<F>(grid.memories, offsets[u]);
  }
  if constexpr (V > 1) map_tail<F, V, T...>(grid, f);
}

}  // namespace plugrad::cuda
