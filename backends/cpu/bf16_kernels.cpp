// Only functions called on processors with these instructions are compiled for them.
#include <backends/cpu/bf16_product.hpp>

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <backends/cpu/intrinsics.hpp>
#include <utility>

HWY_PUSH_ATTRIBUTES("avx512f,avx512vl,avx512dq,avx512bw,avx512bf16,amx-tile,amx-bf16,fma,bmi,bmi2")
namespace plugrad::cpu {
namespace {

constexpr int64_t kLanes = 16;  // f32, or pairs of bf16, in a vector
using Vectors = __m512i[kLanes];

__mmask16 first16(int64_t count) {
  return static_cast<__mmask16>(count >= 16 ? 0xffff : (1u << std::max<int64_t>(count, 0)) - 1);
}
__mmask32 first32(int64_t count) { return count >= 32 ? ~__mmask32{0} : (__mmask32{1} << std::max<int64_t>(count, 0)) - 1; }

// Transposes 16 vectors of 16 elements.
void transpose(Vectors& r) {
  Vectors t;
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {  // in lane l of r[i + j]: column 4 l + j of the rows i .. i + 3
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const __m512i even = _mm512_shuffle_i32x4(r[j], r[4 + j], 0x88), odd = _mm512_shuffle_i32x4(r[j], r[4 + j], 0xdd);
    const __m512i even_low = _mm512_shuffle_i32x4(r[8 + j], r[12 + j], 0x88);
    const __m512i odd_low = _mm512_shuffle_i32x4(r[8 + j], r[12 + j], 0xdd);
    r[j] = _mm512_shuffle_i32x4(even, even_low, 0x88);
    r[8 + j] = _mm512_shuffle_i32x4(even, even_low, 0xdd);
    r[4 + j] = _mm512_shuffle_i32x4(odd, odd_low, 0x88);
    r[12 + j] = _mm512_shuffle_i32x4(odd, odd_low, 0xdd);
  }
}

// A vector a row: the row's elements along k, two in a lane.
void load_rows(Vectors& v, int64_t rows, int64_t k, Matrix<const BFloat16> x) {
#pragma GCC unroll 16
  for (int64_t r = 0; r < kLanes; ++r)
    v[r] = r < rows ? _mm512_maskz_loadu_epi16(first32(k), x.data + r * x.row) : _mm512_setzero_si512();
}

// Loads a vector for each pair of k; a lane has the pair of a row. The rows are neighbours in memory.
void load_pairs(Vectors& v, int64_t rows, int64_t k, Matrix<const BFloat16> x) {
  const __mmask16 mask = first16(rows);
  const auto load = [&](int64_t i) {
    return i < k ? _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, x.data + i * x.column)) : _mm512_setzero_si512();
  };
#pragma GCC unroll 16
  for (int64_t p = 0; p < kLanes; ++p) v[p] = _mm512_or_si512(load(2 * p), _mm512_slli_epi32(load(2 * p + 1), 16));
}

void gather_rows(Vectors& v, int64_t rows, int64_t k, Matrix<const BFloat16> x) {
  alignas(64) BFloat16 buffer[kTileSize] = {};
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < std::min(k, kTileDepth); ++i) buffer[r * kTileDepth + i] = x.data[r * x.row + i * x.column];
  for (int64_t r = 0; r < kLanes; ++r) v[r] = _mm512_load_si512(buffer + r * kTileDepth);
}

template <bool right> void pack(int64_t rows, int64_t k, Matrix<const BFloat16> x, BFloat16* to) {
  const bool pairs = x.row == 1 && x.column != 1;
  for (; k > 0; k -= kTileDepth, x.data += kTileDepth * x.column, to += kTileSize) {
    Vectors v;
    if (pairs) load_pairs(v, rows, k, x);
    else if (x.column == 1) load_rows(v, rows, k, x);
    else gather_rows(v, rows, k, x);
    if (pairs != right) transpose(v);
    for (int64_t i = 0; i < kLanes; ++i) _mm512_storeu_si512(to + i * kTileDepth, v[i]);
  }
}

void round_row(int64_t columns, const float* c, BFloat16* out, bool add) {
  if (columns == kBlock && !add) {
    const __m512bh v = _mm512_cvtne2ps_pbh(_mm512_loadu_ps(c + kLanes), _mm512_loadu_ps(c));
    return _mm512_storeu_si512(out, reinterpret_cast<__m512i>(v));
  }
  for (int64_t j = 0; j < columns; j += kLanes) {
    const __mmask16 mask = first16(columns - j);
    __m512 v = _mm512_maskz_loadu_ps(mask, c + j);
    if (add) {
      const __m512i old = _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, out + j)), 16);
      v = _mm512_add_ps(v, _mm512_castsi512_ps(old));
    }
    _mm256_mask_storeu_epi16(out + j, mask, reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(v)));
  }
}

// A transposed block of 16 rows and columns.
void transpose_sums(SumBlock c, float (&to)[kTileSize / 2]) {
  Vectors v;
  for (int64_t r = 0; r < kLanes; ++r) v[r] = _mm512_loadu_si512(c.data + r * c.row);
  transpose(v);
  for (int64_t r = 0; r < kLanes; ++r) _mm512_storeu_si512(to + r * kLanes, v[r]);
}

void round(int64_t rows, int64_t columns, SumBlock c, Matrix<BFloat16> out, bool add) {
  if (out.column == 1) {
    for (int64_t r = 0; r < rows; ++r) round_row(columns, c.data + r * c.row, out.data + r * out.row, add);
    return;
  }
  for (int64_t r = 0; r < rows; r += kLanes)
    for (int64_t j = 0; j < columns; j += kLanes) {
      const int64_t some = std::min(kLanes, rows - r);
      alignas(64) float sums[kTileSize / 2];
      transpose_sums({c.data + r * c.row + j, c.row}, sums);
      for (int64_t i = 0; i < std::min(kLanes, columns - j); ++i) {
        BFloat16* to = out.data + r * out.row + (j + i) * out.column;
        if (out.row == 1) {
          round_row(some, sums + i * kLanes, to, add);
          continue;
        }
        for (int64_t s = 0; s < some; ++s, to += out.row) round_row(1, sums + i * kLanes + s, to, add);
      }
    }
}

// --- AMX: tiles 0 to 3 hold sums, 4 and 5 are of the left operand, 6 and 7 of the right operand.

template <int rows, int columns>
void multiply_tiles(int64_t steps, LeftTiles a, const BFloat16* b, int64_t b_tile, SumBlock c, bool add, Lines ahead) {
  const int64_t stride = c.row * 4, row = a.row * 2;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  if (add) {
    _tile_loadd(0, c.data, stride);
    if constexpr (columns > 1) _tile_loadd(1, c.data + kTile, stride);
    if constexpr (rows > 1) _tile_loadd(2, c.data + kTile * c.row, stride);
    if constexpr (rows > 1 && columns > 1) _tile_loadd(3, c.data + kTile * c.row + kTile, stride);
  }
  for (int64_t s = 0; s < steps; ++s, a.data += a.step, b += kTileSize) {
    for (int64_t i = 0; i < ahead.each; ++i, ahead.data += ahead.row) _mm_prefetch(ahead.data, _MM_HINT_ET0);
    _tile_loadd(4, a.data, row);
    _tile_loadd(6, b, 64);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (columns > 1) {
      _tile_loadd(7, b + b_tile, 64);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (rows > 1) {
      _tile_loadd(5, a.data + a.tile, row);
      _tile_dpbf16ps(2, 5, 6);
    }
    if constexpr (rows > 1 && columns > 1) _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, c.data, stride);
  if constexpr (columns > 1) _tile_stored(1, c.data + kTile, stride);
  if constexpr (rows > 1) _tile_stored(2, c.data + kTile * c.row, stride);
  if constexpr (rows > 1 && columns > 1) _tile_stored(3, c.data + kTile * c.row + kTile, stride);
}

struct TileShapes {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileShapes) == 64);

// Code elsewhere in the process may rely on its tile shapes in this thread's registers.
void begin_tiles(char (&state)[64]) {
  static constexpr TileShapes kShapes;
  _tile_storeconfig(state);
  _tile_loadconfig(&kShapes);
}
void end_tiles(const char (&state)[64]) {
  if (state[0]) _tile_loadconfig(state);
  else _tile_release();
}

// --- AVX-512: strips of rows in registers.

template <int rows, int columns>
void multiply_strip(int64_t steps, LeftTiles a, const BFloat16* b, int64_t b_tile, SumBlock c, bool add) {
  __m512 sums[rows][columns];
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
    for (int j = 0; j < columns; ++j)
      sums[r][j] = add ? _mm512_loadu_ps(c.data + r * c.row + j * kLanes) : _mm512_setzero_ps();
  for (int64_t s = 0; s < steps; ++s, a.data += a.step, b += kTileSize)
    for (int64_t p = 0; p < kTile; ++p) {
      __m512i right[columns];
#pragma GCC unroll 2
      for (int j = 0; j < columns; ++j) right[j] = _mm512_loadu_si512(b + j * b_tile + p * kTileDepth);
#pragma GCC unroll 16
      for (int r = 0; r < rows; ++r) {
        int32_t pair;
        std::memcpy(&pair, a.data + r * a.row + 2 * p, sizeof pair);
        const auto left = reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair));
#pragma GCC unroll 2
        for (int j = 0; j < columns; ++j)
          sums[r][j] = _mm512_dpbf16_ps(sums[r][j], left, reinterpret_cast<__m512bh>(right[j]));
      }
    }
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
    for (int j = 0; j < columns; ++j) _mm512_storeu_ps(c.data + r * c.row + j * kLanes, sums[r][j]);
}

template <int rows, int columns>
void multiply_pairs(int64_t steps, LeftTiles a, const BFloat16* b, int64_t b_tile, SumBlock c, bool add, Lines) {
  constexpr int kStrip = 8;
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t r = 0; r < kTile; r += kStrip)
      multiply_strip<kStrip, columns>(steps, {a.data + t * a.tile + r * a.row, a.row, a.step, 0}, b, b_tile,
                                      {c.data + (t * kTile + r) * c.row, c.row}, add);
}

void begin_pairs(char (&)[64]) {}
void end_pairs(const char (&)[64]) {}

constexpr Bf16Kernels kTileKernels{
    {{multiply_tiles<1, 1>, multiply_tiles<1, 2>}, {multiply_tiles<2, 1>, multiply_tiles<2, 2>}},
    pack<false>,
    pack<true>,
    round,
    begin_tiles,
    end_tiles};
constexpr Bf16Kernels kPairKernels{
    {{multiply_pairs<1, 1>, multiply_pairs<1, 2>}, {multiply_pairs<2, 1>, multiply_pairs<2, 2>}},
    pack<false>,
    pack<true>,
    round,
    begin_pairs,
    end_pairs};

}  // namespace
}  // namespace plugrad::cpu
HWY_POP_ATTRIBUTES

namespace plugrad::cpu {
const Bf16Kernels* tile_kernels() { return &kTileKernels; }
const Bf16Kernels* pair_kernels() { return &kPairKernels; }
}  // namespace plugrad::cpu
#else
namespace plugrad::cpu {
const Bf16Kernels* tile_kernels() { return nullptr; }
const Bf16Kernels* pair_kernels() { return nullptr; }
}  // namespace plugrad::cpu
#endif
