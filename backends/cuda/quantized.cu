// Products with weights of 2, 4 or 8 bits an element. For few rows of x, a warp reads the codes of a row of the weight word
// by word, which memory bounds. For many rows, tiles of the weight are unpacked into shared memory.
#include <backends/cuda/rows.hpp>
#include <backends/cuda/submission.hpp>
#include <backends/cuda/team.hpp>
#include <backends/cuda/tile.hpp>

namespace plugrad::cuda {
namespace {

constexpr int kFewRows = 8;         // of x, read at once beside a row of the weight
constexpr int64_t kMostPasses = 2;  // over the codes, before tiles are faster

struct Affine {
  float scale, minimum;
};

// A weight (n, k): codes and scales, dense.
struct QuantizedWeight {
  const uint8_t* codes;
  const void* scales;
  int64_t row_bytes;
  uint32_t groups, group;  // of a row; elements of a group
  bool has_halves, has_minima, is_aligned;

  QuantizedWeight(const plugrad_view& bytes, const plugrad_view& pairs, int64_t k)
      : codes(data<uint8_t>(bytes)), scales(data<void>(pairs)), row_bytes(bytes.shape[1]),
        groups(static_cast<uint32_t>(pairs.shape[1])), group(static_cast<uint32_t>(k / pairs.shape[1])),
        has_halves(pairs.dtype == PLUGRAD_F16), has_minima(pairs.shape[2] == 2),
        is_aligned(reinterpret_cast<uintptr_t>(codes) % sizeof(uint32_t) == 0) {}

  // The scale and the minimum of the group of element j of a row; middle: the code of 0 where there are no minima.
  __device__ Affine affine(int64_t row, uint32_t j, float middle) const {
    const int64_t at = (row * groups + j / group) * (has_minima ? 2 : 1);
    const float scale = number(at);
    return {scale, has_minima ? number(at + 1) : -middle * scale};
  }
  // Word number i of a row, the first byte lowest.
  __device__ uint32_t word(int64_t row, uint32_t i) const {
    const uint8_t* const at = codes + row * row_bytes + static_cast<int64_t>(i) * 4;
    if (is_aligned) return *reinterpret_cast<const uint32_t*>(at);
    uint32_t word = 0;
#pragma unroll
    for (int b = 3; b >= 0; --b) word = word << 8 | at[b];
    return word;
  }

 private:
  __device__ float number(int64_t at) const {
    return has_halves ? static_cast<float>(widened(static_cast<const Float16*>(scales)[at]))
                      : static_cast<const float*>(scales)[at];
  }
};

// `rows` rows of x, at most kFewRows, and n rows of the weight: a warp for each row of the weight.
template <class T, int bits>
__global__ void __launch_bounds__(kBlock) few_rows_kernel(const __grid_constant__ QuantizedWeight weight, const T* x, T* out,
                                                          const int rows, const int64_t n, const uint32_t k) {
  constexpr uint32_t kPer = 32 / bits, kMask = (1u << bits) - 1, kWarps = kBlock / 32;
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * kWarps; first < n;
       first += static_cast<int64_t>(gridDim.x) * kWarps) {
    const int64_t row = first + warp < n ? first + warp : n - 1;  // all lanes of a warp take part in its sums
    float sums[kFewRows] = {};
    for (uint32_t i = lane; i < k / kPer; i += 32) {
      const uint32_t word = weight.word(row, i);
      const Affine affine = weight.affine(row, i * kPer, 1 << (bits - 1));
#pragma unroll
      for (int j = 0; j < kFewRows; ++j) {
        if (j >= rows) break;
        float products = 0, sum = 0;
#pragma unroll
        for (uint32_t c = 0; c < kPer; ++c) {
          const float value = static_cast<float>(widened(x[static_cast<int64_t>(j) * k + i * kPer + c]));
          products += static_cast<float>(word >> c * bits & kMask) * value;
          sum += value;
        }
        sums[j] += affine.scale * products + affine.minimum * sum;
      }
    }
#pragma unroll
    for (int j = 0; j < kFewRows; ++j) {
      if (j >= rows) break;
      for (int lanes = 1; lanes < 32; lanes *= 2) sums[j] += from_lane(sums[j], lanes);
      if (lane == 0 && first + warp < n) out[static_cast<int64_t>(j) * n + row] = static_cast<T>(sums[j]);
    }
  }
}

// kDepth elements of kTile rows of the weight, as load_tile loads them.
template <int bits>
__device__ void load_codes(Tile<float>& tile, const QuantizedWeight& weight, int64_t first, int64_t n, uint32_t first_k,
                           uint32_t k) {
  constexpr uint32_t kMask = (1u << bits) - 1;
#pragma unroll
  for (int i = threadIdx.x; i < kTile * kDepth; i += kBlock) {
    const int depth = i % kDepth, place = i / kDepth;
    const uint32_t j = first_k + depth;
    float element = 0;
    if (first + place < n && j < k) {
      const uint32_t byte = weight.codes[(first + place) * weight.row_bytes + j / (8 / bits)];
      const Affine affine = weight.affine(first + place, j, 1 << (bits - 1));
      element = affine.scale * static_cast<float>(byte >> j * bits % 8 & kMask) + affine.minimum;
    }
    tile[depth][place] = element;
  }
}

template <class T, int bits>
__global__ void __launch_bounds__(kBlock)
    quantized_tiles_kernel(const __grid_constant__ QuantizedWeight weight, const T* x, T* out, const int64_t m,
                           const int64_t n, const uint32_t k, const uint64_t across, const uint64_t all) {
  __shared__ Tile<float> a, b;
  for (uint64_t i = blockIdx.x; i < all; i += gridDim.x) {
    const auto row = static_cast<int64_t>(i / across * kTile), column = static_cast<int64_t>(i % across * kTile);
    Results<float> sums{}, totals{};
    int filled = 0;
    for (uint32_t depth = 0; depth < k; depth += kDepth) {
      load_tile(a, x, row, m, k, depth, k, 1);
      load_codes<bits>(b, weight, column, n, depth, k);
      __syncthreads();
      add_products(a, b, sums);
      __syncthreads();
      if (++filled % kFlush == 0) flush(sums, totals);
    }
    flush(sums, totals);
#pragma unroll
    for (int y = 0; y < kEach; ++y)
#pragma unroll
      for (int z = 0; z < kEach; ++z) {
        const int64_t to_row = row + first_row() + y, to_column = column + first_column() + z;
        if (to_row < m && to_column < n) out[to_row * n + to_column] = static_cast<T>(totals.at[y][z]);
      }
  }
}

template <class T, int bits> void multiply(const Call& call, const Submission& submission) {
  static Occupancy of_rows, of_tiles;
  const int64_t m = call.out().shape[0], n = call.out().shape[1], k = call.in(0).shape[1];
  if (k >= INT32_MAX) throw BackendError(PLUGRAD_UNSUPPORTED, "a weight of few bits has rows below 2^31 elements");
  const QuantizedWeight weight(call.in(1), call.in(2), k);
  const T* const x = data<T>(call.in(0));
  T* const out = data<T>(call.out());
  if (m > kMostPasses * kFewRows) {
    const uint64_t across = tiles_of(n), all = across * tiles_of(m);
    const auto kernel = quantized_tiles_kernel<T, bits>;
    PLUGRAD_LAUNCH(kernel, submission.blocks(kernel, all, of_tiles), kBlock, 0, submission.handle(), weight, x, out, m, n,
                   static_cast<uint32_t>(k), across, all);
    submission.launched();
    return;
  }
  const auto kernel = few_rows_kernel<T, bits>;
  const uint64_t blocks = (static_cast<uint64_t>(n) * 32 + kBlock - 1) / kBlock;
  for (int64_t row = 0; row < m; row += kFewRows) {
    PLUGRAD_LAUNCH(kernel, submission.blocks(kernel, blocks, of_rows), kBlock, 0, submission.handle(), weight, x + row * k,
                   out + row * n, static_cast<int>(std::min<int64_t>(kFewRows, m - row)), n, static_cast<uint32_t>(k));
    submission.launched();
  }
}

template <class T> void quantized_matmul(const Call& call, const Submission& submission) {
  switch (call.in(1).shape[1] * 8 / call.in(0).shape[1]) {
    case 2: return multiply<T, 2>(call, submission);
    case 4: return multiply<T, 4>(call, submission);
    default: return multiply<T, 8>(call, submission);
  }
}

constexpr uint16_t kDense = PLUGRAD_UNALIGNED | PLUGRAD_WIDE_INDEX;
constexpr std::array kRows{kernel<submit<quantized_matmul<float>>>(PLUGRAD_OP_QUANTIZED_MATMUL, PLUGRAD_F32, kDense),
                           kernel<submit<quantized_matmul<BFloat16>>>(PLUGRAD_OP_QUANTIZED_MATMUL, PLUGRAD_BF16, kDense)};

}  // namespace

Rows quantized_rows() { return kRows; }

}  // namespace plugrad::cuda
