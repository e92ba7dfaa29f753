// Products of tiles in shared memory. A block computes kTile x kTile results, a thread kEach x kEach of them.
#pragma once
#include <backends/cuda/submission.hpp>

#include <plugrad/sdk/dtypes.hpp>

#include <cmath>

namespace plugrad::cuda {

inline constexpr int kTile = 64, kDepth = 16, kEach = 4;
inline constexpr int kAcross = kTile / kEach;
static_assert(kAcross * kAcross == kBlock);

// kDepth terms of kTile sums; the padding spreads accesses over the banks.
template <class W> using Tile = W[kDepth][kTile + 4];

// The first of this thread's rows and columns in the block's results.
__device__ __forceinline__ int first_row() { return static_cast<int>(threadIdx.x) / kAcross * kEach; }
__device__ __forceinline__ int first_column() { return static_cast<int>(threadIdx.x) % kAcross * kEach; }

// Loads one operand's tile: kDepth along k, kTile along the second axis. Adjacent threads follow the contiguous axis.
template <class W, class T>
__device__ void load_tile(Tile<W>& tile, const T* from, int64_t first, int64_t extent, int64_t stride, int64_t first_k,
                          int64_t k, int64_t k_stride) {
  const bool along_k = k_stride == 1;
#pragma unroll
  for (int i = threadIdx.x; i < kTile * kDepth; i += kBlock) {
    const int depth = along_k ? i % kDepth : i / kTile, place = along_k ? i / kDepth : i % kTile;
    const bool is_there = first + place < extent && first_k + depth < k;
    tile[depth][place] = is_there ? widened(from[(first + place) * stride + (first_k + depth) * k_stride]) : W(0);
  }
}

template <class T> struct Results {
  T at[kEach][kEach];
};

template <class T> __device__ void add_products(const Tile<T>& a, const Tile<T>& b, Results<T>& sums) {
  const int y = first_row(), x = first_column();
#pragma unroll
  for (int depth = 0; depth < kDepth; ++depth) {
    T row[kEach], column[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      row[i] = a[depth][y + i];
      column[i] = b[depth][x + i];
    }
#pragma unroll
    for (int i = 0; i < kEach; ++i)
#pragma unroll
      for (int j = 0; j < kEach; ++j) sums.at[i][j] = std::fma(row[i], column[j], sums.at[i][j]);
  }
}

inline constexpr int kFlush = 16;  // tiles along k, summed separately before they join the total, for accuracy

template <class T> __device__ void flush(Results<T>& sums, Results<T>& totals) {
#pragma unroll
  for (int i = 0; i < kEach; ++i)
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      totals.at[i][j] += sums.at[i][j];
      sums.at[i][j] = 0;
    }
}

inline uint64_t tiles_of(int64_t extent) { return (static_cast<uint64_t>(extent) + kTile - 1) / kTile; }

}  // namespace plugrad::cuda
