// The kernels of convolutions by pixels: a few positions times a panel of rows, held in registers.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/pixel_kernels.cpp"
#include <hwy/foreach_target.h>

#include <backends/cpu/packing-inl.hpp>
#include <backends/cpu/pixels.hpp>
#include <backends/cpu/runs-inl.hpp>

#include <hwy/cache_control.h>

#include <algorithm>
#include <array>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace plugrad::cpu::HWY_NAMESPACE {
namespace {

template <class T> struct Pixels : Runs<T> {
  using typename Runs<T>::D;
  using typename Runs<T>::V;
  using Runs<T>::lanes, Runs<T>::load_few, Runs<T>::store_few;
  // The sums fill the registers, together with a line of weights and an element.
#if HWY_TARGET == HWY_AVX3 || HWY_ARCH_ARM_A64
  static constexpr int kVectors = 4;
#else
  static constexpr int kVectors = 2;
#endif
  static constexpr int64_t kColumns = (HWY_TARGET == HWY_AVX3 ? 256 : 64) / static_cast<int64_t>(sizeof(T));
  template <int vectors> static constexpr int kPositions = vectors > 2 || kVectors == 2 ? 6 : 8;

  template <int positions, int vectors>
  static HWY_INLINE void begin(const PixelSums<T>& s, int64_t column, V (&sums)[positions][vectors]) {
    const D d;
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      const V first = s.adds ? hn::Zero(d) : hn::LoadU(d, s.bias + column + v * lanes());
#pragma GCC unroll 8
      for (int p = 0; p < positions; ++p) sums[p][v] = first;
    }
  }
  template <int positions, int vectors>
  static HWY_INLINE void end(const PixelSums<T>& s, T* out, int64_t column, const V (&sums)[positions][vectors]) {
    const D d;
    const int64_t wide = lanes(), left = s.rows - column;
    if (left >= vectors * wide) {
#pragma GCC unroll 8
      for (int p = 0; p < positions; ++p, out += s.out_step)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) {
          T* const to = out + v * wide;
          hn::StoreU(s.adds ? hn::Add(hn::LoadU(d, to), sums[p][v]) : sums[p][v], d, to);
        }
      return;
    }
    for (int p = 0; p < positions; ++p, out += s.out_step)
      for (int v = 0; v < vectors && v * wide < left; ++v) {
        T* const to = out + v * wide;
        const int64_t some = std::min(left - v * wide, wide);
        store_few(s.adds ? hn::Add(load_few(to, some), sums[p][v]) : sums[p][v], to, some);
      }
  }

  // The lines to fetch during a tile, one with each product: the first tiles share the weights behind the present ones.
  struct Fetch {
    const char* line;
    int64_t step;
  };
  static HWY_INLINE Fetch fetch_of(const PixelSums<T>& s, int64_t position, int64_t column) {
    const int64_t products = s.taps * s.channels, bytes = products * s.columns * static_cast<int64_t>(sizeof(T));
    const int64_t tile = position / kPositions<kVectors>, from = (tile + column / (kVectors * lanes()) * 4) * products * 64;
    const char* const weights = reinterpret_cast<const char*>(s.weights);
    if (!s.fetches || from >= bytes) return {weights, 0};
    return {weights + bytes + from, 64};
  }

  template <int positions, int vectors>
  static HWY_NOINLINE void run_tile(const PixelSums<T>& s, int64_t position, int64_t column) {
    const D d;
    const int64_t wide = lanes(), step = s.columns, channels = s.channels;
    T* const out = s.out + position * s.out_step + column;
    V sums[positions][vectors];
    begin<positions, vectors>(s, column, sums);
    const T* weights = s.weights + column;
    auto [line, line_step] = fetch_of(s, position, column);
    struct {
      const T* const* pixels;
      int64_t left;
    } taps{s.pixels + position, s.taps};
    for (; taps.left > 0; --taps.left, taps.pixels += s.tap_step) {
      asm("" : "+m"(taps));  // else the compiler keeps it in vectors' registers, and the weights in memory
      const T* from[positions];
#pragma GCC unroll 8
      for (int p = 0; p < positions; ++p) from[p] = taps.pixels[p] + s.first;
      for (int64_t c = 0; c < channels; ++c, weights += step, line += line_step) {
        hwy::Prefetch(line);
        V right[vectors];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) right[v] = hn::LoadU(d, weights + v * wide);
#pragma GCC unroll 8
        for (int p = 0; p < positions; ++p) {
          const V factor = hn::Set(d, from[p][c]);
#pragma GCC unroll 4
          for (int v = 0; v < vectors; ++v) sums[p][v] = hn::MulAdd(factor, right[v], sums[p][v]);
        }
      }
    }
    end<positions, vectors>(s, out, column, sums);
  }

  template <int positions, int vectors>
  static HWY_NOINLINE void run_depthwise(const PixelSums<T>& s, int64_t position, int64_t column) {
    const D d;
    const int64_t wide = lanes(), step = s.columns;
    T* const out = s.out + position * s.out_step + column;
    V sums[positions][vectors];
    begin<positions, vectors>(s, column, sums);
    const T* weights = s.weights + column;
    const T* const* pixels = s.pixels + position;
    const int64_t first = s.first + column, left = s.readable - column;
    const bool whole = left >= vectors * wide;
    for (int64_t tap = 0; tap < s.taps; ++tap, pixels += s.tap_step, weights += step) {
      V right[vectors];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) right[v] = hn::LoadU(d, weights + v * wide);
#pragma GCC unroll 8
      for (int p = 0; p < positions; ++p) {
        const T* const from = pixels[p] + first;
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) {
          const V x = whole || left >= (v + 1) * wide ? hn::LoadU(d, from + v * wide)
                      : left > v * wide               ? load_few(from + v * wide, left - v * wide)
                                                      : hn::Zero(d);
          sums[p][v] = hn::MulAdd(x, right[v], sums[p][v]);
        }
      }
    }
    end<positions, vectors>(s, out, column, sums);
  }

  using RunTile = void (*)(const PixelSums<T>&, int64_t, int64_t);
  template <bool depthwise, int vectors, int... i>
  static constexpr std::array<RunTile, sizeof...(i)> tiles(std::integer_sequence<int, i...>) {
    if constexpr (depthwise) return {run_depthwise<i + 1, vectors>...};
    else return {run_tile<i + 1, vectors>...};
  }
  template <bool depthwise, int vectors> static void run_tiles(const PixelSums<T>& s, int64_t column) {
    constexpr int kMost = kPositions<vectors>;
    static constexpr auto kRun = tiles<depthwise, vectors>(std::make_integer_sequence<int, kMost>());
    const int64_t count = (s.positions + kMost - 1) / kMost;
    for (int64_t i = 0, at = 0; i < count; ++i) {
      const int64_t end = (i + 1) * s.positions / count;
      kRun[static_cast<size_t>(end - at - 1)](s, at, column);
      at = end;
    }
  }
  template <bool depthwise> static void run_columns(const PixelSums<T>& s) {
    for (int64_t column = 0; column < s.columns; column += kVectors * lanes()) {
      const int64_t rest = (std::min(s.columns, s.rows) - column + lanes() - 1) / lanes();
      if (rest <= 0) return;
      if (rest == 1) run_tiles<depthwise, 1>(s, column);
      else if (rest == 2) run_tiles<depthwise, 2>(s, column);
      else if (rest == 3) run_tiles<depthwise, std::min(3, kVectors)>(s, column);
      else run_tiles<depthwise, kVectors>(s, column);
    }
  }

  static void copy(int64_t rows, int64_t columns, Matrix<const T> from, T* to, int64_t to_row) {
    if (columns != 3 || to_row != 3 || from.row != 1) return Packing<T>::copy(rows, columns, from, to, to_row);
    const T *const red = from.data, *const green = red + from.column, *const blue = green + from.column;
    int64_t i = 0;
    for (; i + lanes() <= rows; i += lanes())
      hn::StoreInterleaved3(hn::LoadU(D(), red + i), hn::LoadU(D(), green + i), hn::LoadU(D(), blue + i), D(), to + 3 * i);
    for (; i < rows; ++i) {
      to[3 * i] = red[i];
      to[3 * i + 1] = green[i];
      to[3 * i + 2] = blue[i];
    }
  }
};

template <class T>
constexpr PixelKernels<T> kPixelKernels{Pixels<T>::kColumns, Pixels<T>::template run_columns<false>,
                                        Pixels<T>::template run_columns<true>, Pixels<T>::copy};

}  // namespace
}  // namespace plugrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

namespace plugrad::cpu {
template <> const PixelKernels<float>& pixel_kernels<HWY_TARGET, float>() { return HWY_NAMESPACE::kPixelKernels<float>; }
template <> const PixelKernels<double>& pixel_kernels<HWY_TARGET, double>() { return HWY_NAMESPACE::kPixelKernels<double>; }
}  // namespace plugrad::cpu
