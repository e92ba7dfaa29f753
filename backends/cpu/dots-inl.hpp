// Products of a matrix and one or a few vectors: each element is a fold of a contiguous row. Included once for each
// instruction set.
#if defined(PLUGRAD_CPU_DOTS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PLUGRAD_CPU_DOTS_INL
#undef PLUGRAD_CPU_DOTS_INL
#else
#define PLUGRAD_CPU_DOTS_INL
#endif

#include <backends/cpu/fold-inl.hpp>
#include <backends/cpu/product.hpp>

#include <hwy/cache_control.h>

#include <algorithm>
#include <array>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace plugrad::cpu::HWY_NAMESPACE {

template <class T> struct Dots {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  static constexpr int64_t kSize = sizeof(T);
  static int64_t lanes() { return static_cast<int64_t>(hn::Lanes(D())); }
  // Rows per step: the registers hold the sums of these rows with all vectors.
#if HWY_TARGET == HWY_AVX3 || HWY_ARCH_ARM_A64
  static constexpr int kRowsAtOnce = 2;
#else
  static constexpr int kRowsAtOnce = 1;
#endif

#if HWY_TARGET != HWY_SCALAR
  static constexpr int kTogether = 16 / kSize;
  using Block = hn::FixedTag<T, kTogether>;

  // The sums of the lanes of each vector, side by side.
  static HWY_INLINE hn::Vec<Block> folded(const V (&x)[kTogether]) {
    const D d;
    const auto pair = [d](V even, V odd) {
      return hn::Add(hn::InterleaveLower(d, even, odd), hn::InterleaveUpper(d, even, odd));
    };
    HWY_ALIGN T blocks[HWY_MAX_BYTES / kSize];
    if constexpr (kTogether == 2) {
      hn::Store(pair(x[0], x[1]), d, blocks);
    } else {
      const hn::RepartitionToWide<D> pairs;
      const auto first = hn::BitCast(pairs, pair(x[0], x[1])), second = hn::BitCast(pairs, pair(x[2], x[3]));
      hn::Store(hn::Add(hn::BitCast(d, hn::InterleaveLower(pairs, first, second)),
                        hn::BitCast(d, hn::InterleaveUpper(pairs, first, second))),
                d, blocks);
    }
    hn::Vec<Block> sums = hn::Load(Block(), blocks);
    for (int64_t i = kTogether; i < lanes(); i += kTogether) sums = hn::Add(sums, hn::Load(Block(), blocks + i));
    return sums;
  }

  // The last n elements of a row of k, and zeros.
  static HWY_INLINE V last_of(const T* p, int64_t n, int64_t k) {
    const D d;
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
    (void)k;
    return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(n)), d, p);
#else
    return load_rest(d, p, n, k, T(0));
#endif
  }

  // of_one for short rows of a, a few rows at a time. In place of rows beyond the last row it computes the last row again,
  // and stores nothing: so all rows are folded in the same order.
  static HWY_NOINLINE void short_dots(int64_t m, int64_t k, Matrix<const T> a, const T* b, Matrix<T> c, Addend<T> addend) {
    const D d;
    const int64_t wide = lanes();
    HWY_ALIGN T sums[kTogether];
    for (int64_t row = 0; row < m; row += kTogether) {
      const int64_t some = std::min<int64_t>(kTogether, m - row);
      const T* x[kTogether];
      for (int64_t r = 0; r < kTogether; ++r) x[r] = a.data + (row + std::min(r, some - 1)) * a.row;
      V parts[kTogether];
#pragma GCC unroll 4
      for (V& part : parts) part = hn::Zero(d);
      const auto add = [&](V right, auto left) {
#pragma GCC unroll 4
        for (int r = 0; r < kTogether; ++r) parts[r] = hn::MulAdd(left(x[r]), right, parts[r]);
      };
      int64_t i = 0;
      for (; i + wide <= k; i += wide) add(hn::LoadU(d, b + i), [d, i](const T* from) { return hn::LoadU(d, from + i); });
      if (i < k) add(last_of(b + i, k - i, k), [i, k](const T* from) { return last_of(from + i, k - i, k); });
      hn::Store(folded(parts), Block(), sums);
      for (int64_t r = 0; r < some; ++r)
        c.data[(row + r) * c.row] = addend.data ? addend.data[(row + r) * addend.row] + sums[r] : sums[r];
    }
  }
#endif
  static constexpr int64_t kShort = 16;  // vectors of a row; in longer rows, a fold of lanes costs little

  // c (m) = a b for a vector b.
  static void of_one(int64_t m, int64_t k, Matrix<const T> a, Matrix<const T> b, Matrix<T> c, Addend<T> addend) {
#if HWY_TARGET != HWY_SCALAR
    if (k <= kShort * lanes()) return short_dots(m, k, a, b.data, c, addend);
#endif
    // Two rows at a time, from the halves of a: processors fetch more of two streams than of a single stream.
    const int64_t half = (m + 1) / 2;
    for (int64_t r = 0; r < half; ++r) {
      const int64_t second = std::min(r + half, m - 1);
      double sums[2] = {};
      two_dots(k, a.data + r * a.row, a.data + second * a.row, b.data, sums);
      const auto put = [&](int64_t row, double sum) {
        c.data[row * c.row] = static_cast<T>(addend.data ? addend.data[row * addend.row] + sum : sum);
      };
      put(r, sums[0]);
      if (r + half < m) put(second, sums[1]);
    }
  }
  static HWY_INLINE void two_dots(int64_t k, const T* x, const T* y, const T* b, double (&sums)[2]) {
    const D d;
    const int64_t wide = lanes();
    const T* const rows[2] = {x, y};
    for (int64_t first = 0; first < k; first += kFold) {
      const int64_t end = std::min(k, first + kFold);
      V parts[4][2];
#pragma GCC unroll 4
      for (auto& part : parts) part[0] = part[1] = hn::Zero(d);
      const auto add = [&](int64_t at, V(&part)[2]) {
        const V right = hn::LoadU(d, b + at);
        part[0] = hn::MulAdd(hn::LoadU(d, x + at), right, part[0]);
        part[1] = hn::MulAdd(hn::LoadU(d, y + at), right, part[1]);
      };
      int64_t i = first;
      for (; i + 4 * wide <= end; i += 4 * wide) {
        for (int64_t next = i; next < i + 4 * wide; next += 64 / kSize) {
          hwy::Prefetch(x + next + kRowAhead);
          hwy::Prefetch(y + next + kRowAhead);
        }
#pragma GCC unroll 4
        for (int c = 0; c < 4; ++c) add(i + c * wide, parts[c]);
      }
      for (; i + wide <= end; i += wide) add(i, parts[0]);
      for (int r = 0; r < 2; ++r) {
        const V sum = hn::Add(hn::Add(parts[0][r], parts[1][r]), hn::Add(parts[2][r], parts[3][r]));
        sums[r] += static_cast<double>(Folding<Sum<T>>::fold_lanes(sum));
      }
      for (; i < end; ++i)
        for (int r = 0; r < 2; ++r) sums[r] += static_cast<double>(rows[r][i]) * static_cast<double>(b[i]);
    }
  }
  static constexpr int64_t kFold = 1024;
  static constexpr int64_t kRowAhead = 2048 / kSize;  // elements to prefetch

  // c = a b for a few vectors, the columns of b: rows of a are read once. Stores the sums of `rows` rows.
  template <int rows, int columns>
  static HWY_NOINLINE void dot_rows(int64_t k, Matrix<const T> a, Matrix<const T> b, double (&sums)[rows][columns]) {
    const D d;
    const int64_t wide = lanes();
    for (int64_t first = 0; first < k; first += kFold) {
      const int64_t end = std::min(k, first + kFold);
      V parts[rows][columns];
#pragma GCC unroll 2
      for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
        for (int j = 0; j < columns; ++j) parts[r][j] = hn::Zero(d);
      int64_t i = first;
      for (; i + wide <= end; i += wide) {
        V left[rows];
#pragma GCC unroll 2
        for (int r = 0; r < rows; ++r) {
          hwy::Prefetch(a.data + r * a.row + i + kFarAhead * rows);
          left[r] = hn::LoadU(d, a.data + r * a.row + i);
        }
#pragma GCC unroll 8
        for (int j = 0; j < columns; ++j) {
          const V right = hn::LoadU(d, b.data + j * b.column + i);
#pragma GCC unroll 2
          for (int r = 0; r < rows; ++r) parts[r][j] = hn::MulAdd(left[r], right, parts[r][j]);
        }
      }
      // Unrolled like the loops above, since the compiler would otherwise keep the parts in memory.
#pragma GCC unroll 2
      for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
        for (int j = 0; j < columns; ++j) sums[r][j] += static_cast<double>(Folding<Sum<T>>::fold_lanes(parts[r][j]));
      for (; i < end; ++i)
        for (int r = 0; r < rows; ++r)
          for (int j = 0; j < columns; ++j)
            sums[r][j] += static_cast<double>(a.data[r * a.row + i]) * static_cast<double>(b.data[j * b.column + i]);
    }
  }
  static constexpr int64_t kFarAhead = 1024 / kSize;

  template <int columns>
  static void of_several(int64_t m, int64_t k, Matrix<const T> a, Matrix<const T> b, Matrix<T> c, Addend<T> addend) {
    const auto put = [&](int64_t row, const double* sums) {
      const T* from = addend.data ? addend.data + row * addend.row : nullptr;
      for (int j = 0; j < columns; ++j)
        c.data[row * c.row + j * c.column] = static_cast<T>(from ? from[j * addend.column] + sums[j] : sums[j]);
    };
    int64_t row = 0;
    for (; row + kRowsAtOnce <= m; row += kRowsAtOnce) {
      double sums[kRowsAtOnce][columns] = {};
      dot_rows<kRowsAtOnce, columns>(k, {a.data + row * a.row, a.row, 1}, b, sums);
      for (int r = 0; r < kRowsAtOnce; ++r) put(row + r, sums[r]);
    }
    for (; row < m; ++row) {
      double sums[1][columns] = {};
      dot_rows<1, columns>(k, {a.data + row * a.row, a.row, 1}, b, sums);
      put(row, sums[0]);
    }
  }
  using Function = void (*)(int64_t, int64_t, Matrix<const T>, Matrix<const T>, Matrix<T>, Addend<T>);
  template <int... i> static constexpr std::array<Function, sizeof...(i)> table(std::integer_sequence<int, i...>) {
    return {of_several<i + 1>...};
  }

  // columns: 1 to kFewVectors.
  static Function of(int64_t columns) {
    static constexpr auto kAll = table(std::make_integer_sequence<int, kFewVectors>());
    return kAll[static_cast<size_t>(columns - 1)];
  }
};

}  // namespace plugrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
