// Moves complex numbers between memory and the panels of Fourier transforms. Included once for each instruction set.
#if defined(PLUGRAD_CPU_FOURIER_EDGES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PLUGRAD_CPU_FOURIER_EDGES_INL
#undef PLUGRAD_CPU_FOURIER_EDGES_INL
#else
#define PLUGRAD_CPU_FOURIER_EDGES_INL
#endif

#include <backends/cpu/fourier_passes-inl.hpp>

#include <algorithm>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace plugrad::cpu::HWY_NAMESPACE {

// swapped: real parts stand in the place of imaginary parts. The transform of swapped numbers is the backward transform,
// swapped.
template <class T, bool swapped> struct Edges {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  using C = Complexes<D>;
  static constexpr int64_t kLanes = Columns<T>::kLanes, kPair = Columns<T>::kPair;

  static HWY_INLINE C load(const T* p) {
    C c;
    hn::LoadInterleaved2(D(), p, c.re, c.im);
    return turned(c);
  }
  static HWY_INLINE void store(C c, T* p) {
    const C out = turned(c);
    hn::StoreInterleaved2(out.re, out.im, D(), p);
  }
  // At most a vector; the others are 0.
  static HWY_INLINE C load(const T* p, int64_t count) {
    if (count >= kLanes) return load(p);
    alignas(HWY_MAX_BYTES) T some[kPair] = {};
    std::memcpy(some, p, static_cast<size_t>(2 * count) * sizeof(T));
    return load(some);
  }
  static HWY_INLINE void store(C c, T* p, int64_t count) {
    if (count >= kLanes) return store(c, p);
    alignas(HWY_MAX_BYTES) T some[kPair];
    store(c, some);
    std::memcpy(p, some, static_cast<size_t>(2 * count) * sizeof(T));
  }

  // Rows of `columns` adjacent numbers, `step` numbers apart.
  static void load_rows(const T* x, int64_t step, int64_t n, int64_t columns, T* panel) {
    for (int64_t row = 0; row < n; ++row, x += 2 * step)
      for (int64_t c = 0; c < columns; c += kLanes, panel += kPair) Columns<T>::store(load(x + 2 * c, columns - c), panel);
  }
  static void store_rows(const T* panel, T scale, int64_t n, int64_t columns, T* y, int64_t step) {
    const V factor = hn::Set(D(), scale);
    for (int64_t row = 0; row < n; ++row, y += 2 * step)
      for (int64_t c = 0; c < columns; c += kLanes, panel += kPair)
        store(scaled(Columns<T>::load(panel), factor), y + 2 * c, columns - c);
  }

  // At most a vector of lines of n adjacent numbers, `step` numbers apart; they become the panel's columns.
  static void load_lines(const T* x, int64_t step, int64_t n, int64_t lines, T* panel) {
    C tile[kLanes];
    for (int64_t j = 0; j < n; j += kLanes) {
      for (int64_t i = 0; i < kLanes; ++i)
        tile[i] = i < lines ? load(x + 2 * (i * step + j), n - j) : C{hn::Zero(D()), hn::Zero(D())};
      transpose(tile);
      for (int64_t i = 0; i < std::min(kLanes, n - j); ++i) Columns<T>::store(tile[i], panel + (j + i) * kPair);
    }
  }
  static void store_lines(const T* panel, T scale, int64_t n, int64_t lines, T* y, int64_t step) {
    const V factor = hn::Set(D(), scale);
    C tile[kLanes];
    for (int64_t j = 0; j < n; j += kLanes) {
      for (int64_t i = 0; i < kLanes; ++i) tile[i] = Columns<T>::load(panel + std::min(j + i, n - 1) * kPair);
      transpose(tile);
      for (int64_t i = 0; i < lines; ++i) store(scaled(tile[i], factor), y + 2 * (i * step + j), n - j);
    }
  }

  // A stage moves the lowest bit of an element's lane to the top of its row, and the row's lowest bit to the top of its
  // lane.
  static HWY_INLINE void transpose([[maybe_unused]] C* tile) {
#if HWY_TARGET != HWY_SCALAR
    for (int64_t stage = 1; stage < kLanes; stage *= 2) {
      C next[kLanes];
      for (int64_t i = 0; i < kLanes / 2; ++i) {
        const C &low = tile[2 * i], &high = tile[2 * i + 1];
        next[i] = {hn::ConcatEven(D(), high.re, low.re), hn::ConcatEven(D(), high.im, low.im)};
        next[i + kLanes / 2] = {hn::ConcatOdd(D(), high.re, low.re), hn::ConcatOdd(D(), high.im, low.im)};
      }
      std::copy_n(next, kLanes, tile);
    }
#endif
  }

 private:
  static HWY_INLINE C turned(C c) {
    if constexpr (swapped) return {c.im, c.re};
    else return c;
  }
};

}  // namespace plugrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
