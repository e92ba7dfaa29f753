// Shared by attention and its gradient: operands as matrices, and products of their tiles.
#pragma once
#include <backends/cuda/accumulator.hpp>
#include <backends/cuda/functions.hpp>
#include <backends/cuda/team.hpp>
#include <backends/cuda/tile.hpp>
#include <backends/cuda/walk.hpp>

#include <plugrad/sdk/mask.hpp>

namespace plugrad::cuda {

// The last two axes of an operand.
struct Extents {
  int64_t rows, columns, row, column;  // row, column: strides

  Extents() = default;
  explicit Extents(const plugrad_view& view)
      : rows(view.shape[view.rank - 2]), columns(view.shape[view.rank - 1]), row(stride_of(view, view.rank - 2)),
        column(stride_of(view, view.rank - 1)) {}
  Extents transposed() const {
    Extents turned = *this;
    std::swap(turned.rows, turned.columns);
    std::swap(turned.row, turned.column);
    return turned;
  }
};

template <class T> struct MatrixOf {
  T* first;
  const Extents& of;
  __device__ __forceinline__ T& at(int64_t i, int64_t j) const { return first[i * of.row + j * of.column]; }
};

// The number that a mask adds to each score, or its elements.
template <class T> struct Mask {
  using A = AccumulatorOf<T>;
  MatrixOf<const T> elements;  // without memory for a number
  A number;
  __device__ __forceinline__ A at(int64_t i, int64_t j) const {
    return elements.first ? static_cast<A>(elements.at(i, j)) : number;
  }
};
template <class T> struct MaskOperand {
  const T* first;  // null: a number
  AccumulatorOf<T> number;

  explicit MaskOperand(const plugrad_view& view)
      : first(is_immediate(view) ? nullptr : data<const T>(view)), number(first ? 0 : immediate<AccumulatorOf<T>>(view)) {}
  __device__ __forceinline__ Mask<T> matrix(int64_t offset, const Extents& of) const {
    return {{first ? first + offset : nullptr, of}, number};
  }
};

template <class A> struct SharedTiles {
  Tile<A> left, right;
};

// The chunks of kTile columns of a result. A block computes all of them at once.
inline constexpr int kChunks = 2;
inline uint64_t chunks_of(int64_t columns) { return (tiles_of(columns) + kChunks - 1) / kChunks; }
// The least number of blocks per multiprocessor. Without this bound, the compiler's use of registers leaves room for one
// block.
template <class A> inline constexpr int kBlocksAtOnce = sizeof(A) > 4 ? 1 : 2;
template <class A> struct Totals {
  Results<A> chunk[kChunks];
};

// Returns the products of rows of a, from `row` on, and rows of b, from `column` on. All threads of the block must call
// this.
template <class T, class A>
__device__ __forceinline__ Results<A> multiply_rows(SharedTiles<A>& shared, const MatrixOf<const T>& a, int64_t row,
                                                    const MatrixOf<const T>& b, int64_t column) {
  Results<A> sums{};
  const bool is_used = row + first_row() < a.of.rows && column + first_column() < b.of.rows;
  for (int64_t k = 0; k < a.of.columns; k += kDepth) {
    load_tile(shared.left, a.first, row, a.of.rows, a.of.row, k, a.of.columns, a.of.column);
    load_tile(shared.right, b.first, column, b.of.rows, b.of.row, k, b.of.columns, b.of.column);
    __syncthreads();
    if (is_used) add_products(shared.left, shared.right, sums);
    __syncthreads();
  }
  return sums;
}

// Writes columns [first, first + kDepth) of the block's weights as a tile, for sums over these columns.
template <class A> __device__ __forceinline__ void store_weights(const Results<A>& weights, int first, Tile<A>& tile) {
  const int x = first_column() - first, y = first_row();
  if (x < 0 || x >= kDepth) return;
#pragma unroll
  for (int i = 0; i < kEach; ++i)
#pragma unroll
    for (int j = 0; j < kEach; ++j) tile[x + j][y + i] = weights.at[i][j];
}

// Returns the block's weights, in `rows` existing rows, times kTile columns of b from `column` on; the weights' columns
// belong to the rows of b from `row` on. All threads of the block must call this.
template <class T, class A>
__device__ __forceinline__ Results<A> multiply_weights(SharedTiles<A>& shared, const Results<A>& weights, int64_t rows,
                                                       const MatrixOf<const T>& b, int64_t row, int64_t column) {
  Results<A> sums{};
  const bool is_used = first_row() < rows && column + first_column() < b.of.columns;
  for (int k = 0; k < kTile && row + k < b.of.rows; k += kDepth) {
    store_weights(weights, k, shared.left);
    load_tile(shared.right, b.first, column, b.of.columns, b.of.column, row + k, b.of.rows, b.of.row);
    __syncthreads();
    if (is_used) add_products(shared.left, shared.right, sums);
    __syncthreads();
  }
  return sums;
}

// Calls f(i, j) for this thread's kEach x kEach elements.
template <class F> __device__ __forceinline__ void each_element(F f) {
#pragma unroll
  for (int i = 0; i < kEach; ++i)
#pragma unroll
    for (int j = 0; j < kEach; ++j) f(i, j);
}

}  // namespace plugrad::cuda
