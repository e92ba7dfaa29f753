// Our own kernel for matrix products of any layout, with tiles in shared memory. It runs without cuBLAS, and for layouts not
// accepted by cuBLAS.
#include <backends/cuda/matmul.hpp>
#include <backends/cuda/tile.hpp>

namespace plugrad::cuda {
namespace {

struct Tiles {
  Product p;
  uint64_t across, of_one, all;  // tiles per row, per matrix, in the batch
};

template <class T, class W>
__device__ void store(const Product& p, T* c, int64_t row, int64_t column, const Results<W>& totals) {
#pragma unroll
  for (int i = 0; i < kEach; ++i)
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      if (row + i >= p.m || column + j >= p.n) continue;
      T& place = c[(row + i) * p.c.row + (column + j) * p.c.column];
      place = static_cast<T>(p.adds ? widened(place) + totals.at[i][j] : totals.at[i][j]);
    }
}

template <class T> __global__ void __launch_bounds__(kBlock) product_kernel(const __grid_constant__ Tiles t) {
  using W = ComputeType<T>;
  __shared__ Tile<W> a, b;
  const Product& p = t.p;
  for (uint64_t i = blockIdx.x; i < t.all; i += gridDim.x) {
    const uint64_t matrix = i / t.of_one, inside = i - matrix * t.of_one;
    const auto row = static_cast<int64_t>(inside / t.across * kTile),
               column = static_cast<int64_t>(inside % t.across * kTile);
    const Reach<3> reach = p.batch.reach(matrix);
    const T* const left = reinterpret_cast<const T*>(p.a.base) + reach.at[1];
    const T* const right = reinterpret_cast<const T*>(p.b.base) + reach.at[2];
    Results<W> sums{}, totals{};
    int filled = 0;
    for (int64_t depth = 0; depth < p.k; depth += kDepth) {
      load_tile(a, left, row, p.m, p.a.row, depth, p.k, p.a.column);
      load_tile(b, right, column, p.n, p.b.column, depth, p.k, p.b.row);
      __syncthreads();
      add_products(a, b, sums);
      __syncthreads();
      if (++filled % kFlush == 0) flush(sums, totals);
    }
    flush(sums, totals);
    store(p, reinterpret_cast<T*>(p.c.base) + reach.at[0], row + first_row(), column + first_column(), totals);
  }
}

}  // namespace

template <class T> void multiply_by_tiles(const Submission& submission, const Product& product) {
  static Occupancy occupancy;
  const uint64_t across = tiles_of(product.n), of_one = across * tiles_of(product.m);
  const Tiles tiles{product, across, of_one, of_one * product.batch.count};
  const auto kernel = product_kernel<T>;
  PLUGRAD_LAUNCH(kernel, submission.blocks(kernel, tiles.all, occupancy), kBlock, 0, submission.handle(), tiles);
  submission.launched();
}
template void multiply_by_tiles<float>(const Submission&, const Product&);
template void multiply_by_tiles<double>(const Submission&, const Product&);
template void multiply_by_tiles<BFloat16>(const Submission&, const Product&);
template void multiply_by_tiles<Float16>(const Submission&, const Product&);

}  // namespace plugrad::cuda
