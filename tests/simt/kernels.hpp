// Correct kernels, similar to those of a backend.
#pragma once
#include <cuda_runtime.h>
#ifndef PLUGRAD_SIMT
#error "the emulator's tests run on the emulator"
#endif

namespace simt::test {

__device__ inline size_t global_index() { return static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ inline size_t global_size() { return static_cast<size_t>(gridDim.x) * blockDim.x; }

struct Plus {
  template <class T> __device__ T operator()(T a, T b) const { return a + b; }
};
struct Larger {
  template <class T> __device__ T operator()(T a, T b) const { return a > b ? a : b; }
};

template <class T, class Op> __global__ void binary(T* out, const T* a, const T* b, size_t n, Op op) {
  for (size_t i = global_index(); i < n; i += global_size()) out[i] = op(a[i], b[i]);
}

template <class T, class Op> __device__ T reduce_warp(T value, Op op) {
  for (int offset = 16; offset > 0; offset /= 2) value = op(value, __shfl_down_sync(~0u, value, offset));
  return value;
}

// Writes one value per block. With a single block it is the second stage of a reduction.
template <class T, class Op> __global__ void reduce(T* partial, const T* in, size_t n, T identity, Op op) {
  __shared__ T warps[32];
  T value = identity;
  for (size_t i = global_index(); i < n; i += global_size()) value = op(value, in[i]);
  value = reduce_warp(value, op);
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (lane == 0) warps[warp] = value;
  __syncthreads();
  if (warp != 0) return;
  value = reduce_warp(lane < (blockDim.x + 31) / 32 ? warps[lane] : identity, op);
  if (lane == 0) partial[blockIdx.x] = value;
}

template <class T, int kTile> __global__ void matmul(T* c, const T* a, const T* b, int m, int n, int k) {
  __shared__ T left[kTile][kTile + 1];
  __shared__ T right[kTile][kTile + 1];
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const int row = static_cast<int>(blockIdx.y) * kTile + y, column = static_cast<int>(blockIdx.x) * kTile + x;
  T sum = 0;
  for (int from = 0; from < k; from += kTile) {
    left[y][x] = row < m && from + x < k ? a[row * k + from + x] : T(0);
    right[y][x] = column < n && from + y < k ? b[(from + y) * n + column] : T(0);
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum += left[y][i] * right[i][x];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}

// One block per row.
__global__ inline void softmax(float* out, const float* in, int columns) {
  PLUGRAD_DYNAMIC_SHARED(float, row);
  __shared__ float whole;
  const float* from = in + static_cast<size_t>(blockIdx.x) * static_cast<size_t>(columns);
  float largest = -INFINITY, sum = 0;
  for (int i = 0; i < columns; ++i) largest = fmaxf(largest, from[i]);
  for (int i = static_cast<int>(threadIdx.x); i < columns; i += static_cast<int>(blockDim.x))
    sum += row[i] = expf(from[i] - largest);
  for (int bits = 16; bits; bits /= 2) sum += __shfl_xor_sync(~0u, sum, bits);
  if (threadIdx.x == 0) whole = 0;
  __syncthreads();
  if (threadIdx.x % 32 == 0) atomicAdd(&whole, sum);
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < columns; i += static_cast<int>(blockDim.x))
    out[static_cast<size_t>(blockIdx.x) * static_cast<size_t>(columns) + static_cast<size_t>(i)] = row[i] / whole;
}

template <class T> __global__ void scatter_add(T* out, const int* index, const T* values, size_t n) {
  for (size_t i = global_index(); i < n; i += global_size()) atomicAdd(&out[index[i]], values[i]);
}

}  // namespace simt::test
