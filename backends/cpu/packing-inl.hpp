// Copies matrices into the reading order of the kernels of products. Included once for each instruction set.
#if defined(PLUGRAD_CPU_PACKING_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PLUGRAD_CPU_PACKING_INL
#undef PLUGRAD_CPU_PACKING_INL
#else
#define PLUGRAD_CPU_PACKING_INL
#endif

#include <backends/cpu/product.hpp>
#include <backends/cpu/tile.hpp>

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace plugrad::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T> struct Packing {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  static constexpr int64_t kSize = sizeof(T);
  static constexpr int64_t kAhead = 8;  // rows to prefetch, since processors do not prefetch beyond the current page
  static int64_t lanes() { return static_cast<int64_t>(hn::Lanes(D())); }
  static Tile tile_of(Matrix<const T> x) {
    return {reinterpret_cast<char*>(const_cast<T*>(x.data)), x.row * kSize, x.column * kSize};
  }

  // Copies b (k x n) to panels of `vectors` vectors. If its rows are contiguous, packs several panels at a time, to read
  // longer runs of memory.
  template <int vectors> static void pack_panels(int64_t n, int64_t k, Matrix<const T> b, T* panels, int64_t stride) {
    const D d;
    const int64_t lane = lanes(), wide = vectors * lane, whole = b.column == 1 ? n / wide : 0;
    for (int64_t i = 0; i < k; ++i) {
      const T* from = b.data + i * b.row;
      T* to = panels + i * wide;
      for (int64_t p = 0; p < whole; ++p, from += wide, to += stride)
        for (int v = 0; v < vectors; ++v) {
          hwy::Prefetch(from + kAhead * b.row + v * lane);
          hn::StoreU(hn::LoadU(d, from + v * lane), d, to + v * lane);
        }
    }
    for (int64_t j = whole * wide; j < n; j += wide) {
      T* to = panels + j / wide * stride;
      const int64_t columns = std::min(wide, n - j);
      if (columns < wide) std::fill(to, to + k * wide, T(0));
      copy(k, columns, {b.data + j * b.column, b.row, b.column}, to, wide);
    }
  }

  // Copies rows x columns elements to contiguous rows.
  static void copy(int64_t rows, int64_t columns, Matrix<const T> from, T* to, int64_t to_row) {
#if HWY_TARGET != HWY_SCALAR
    const int64_t wide = lanes();
    if (from.row == 1 && from.column != 1 && rows >= kLane && columns >= wide) {
      for (int64_t c = 0; c < columns; c += wide) {
        c = std::min(c, columns - wide);  // the last vectors and blocks may overlap their predecessors
        for (int64_t r = 0; r < rows; r += kLane) {
          r = std::min(r, rows - kLane);
          transpose(from.data + c * from.column + r, from.column, to + r * to_row + c, to_row);
        }
      }
      return;
    }
#endif
    copy_tile({reinterpret_cast<char*>(to), to_row * kSize, kSize}, tile_of(from), rows, columns, kSize);
  }

 private:
#if HWY_TARGET != HWY_SCALAR
  static constexpr int64_t kLane = 16 / kSize;  // the elements of a block of a vector

  // Blocks `step` elements apart, side by side.
  template <class Tag> static HWY_INLINE hn::Vec<Tag> blocks(Tag d, const T* p, int64_t step) {
    if constexpr (hn::MaxLanes(Tag()) == kLane) {
      return hn::LoadU(d, p);
    } else {
      constexpr int64_t kHalf = hn::MaxLanes(Tag()) / kLane / 2;
      const hn::Half<Tag> half;
      return hn::Combine(d, blocks(half, p + kHalf * step, step), blocks(half, p, step));
    }
  }

  // Transposes a vector's number of lines of kLane elements.
  static HWY_INLINE void transpose(const T* from, int64_t from_row, T* to, int64_t to_row) {
    const D d;
    V lines[kLane];
    for (int64_t i = 0; i < kLane; ++i) lines[i] = blocks(d, from + i * from_row, kLane * from_row);
    if constexpr (kLane == 4) {
      const V even = hn::InterleaveLower(d, lines[0], lines[2]), odd = hn::InterleaveLower(d, lines[1], lines[3]);
      const V even2 = hn::InterleaveUpper(d, lines[0], lines[2]), odd2 = hn::InterleaveUpper(d, lines[1], lines[3]);
      hn::StoreU(hn::InterleaveLower(d, even, odd), d, to);
      hn::StoreU(hn::InterleaveUpper(d, even, odd), d, to + to_row);
      hn::StoreU(hn::InterleaveLower(d, even2, odd2), d, to + 2 * to_row);
      hn::StoreU(hn::InterleaveUpper(d, even2, odd2), d, to + 3 * to_row);
    } else {
      hn::StoreU(hn::InterleaveLower(d, lines[0], lines[1]), d, to);
      hn::StoreU(hn::InterleaveUpper(d, lines[0], lines[1]), d, to + to_row);
    }
  }
#endif
};

}  // namespace plugrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
