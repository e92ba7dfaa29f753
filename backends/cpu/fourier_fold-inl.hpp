// Transforms of 2 h real numbers by transforms of h complex numbers, whose parts are the numbers in even and in odd places.
// Included once for each instruction set.
#if defined(PLUGRAD_CPU_FOURIER_FOLD_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PLUGRAD_CPU_FOURIER_FOLD_INL
#undef PLUGRAD_CPU_FOURIER_FOLD_INL
#else
#define PLUGRAD_CPU_FOURIER_FOLD_INL
#endif

#include <backends/cpu/fourier_edges-inl.hpp>

HWY_BEFORE_NAMESPACE();
namespace plugrad::cpu::HWY_NAMESPACE {

// Roots for fold: -i e^(-2 pi i k / n) for k up to h / 2, n = 2 h. The conjugate roots fold backwards.
template <class T> struct FoldRoots {
  explicit FoldRoots(int64_t n) {
    for (int64_t k = 0; k <= n / 4; ++k) {
      const std::complex<double> root = root_of_unity(k, n);
      numbers.push_back(static_cast<T>(root.imag()));
      numbers.push_back(static_cast<T>(-root.real()));
    }
  }
  std::vector<T> numbers;
};

// With e = a + conj(b) and o = root (a - conj(b)), a becomes e + o, and b conj(e - o); a and b are the numbers k and h - k.
template <class D> HWY_INLINE void fold(Complexes<D>& a, Complexes<D>& b, Complexes<D> root) {
  const Complexes<D> even{hn::Add(a.re, b.re), hn::Sub(a.im, b.im)};
  const Complexes<D> odd = times(root, Complexes<D>{hn::Sub(a.re, b.re), hn::Add(a.im, b.im)});
  a = plus(even, odd);
  b = {hn::Sub(even.re, odd.re), hn::Sub(odd.im, even.im)};
}
template <class D> HWY_INLINE Complexes<D> conjugate(Complexes<D> a) { return {a.re, hn::Neg(a.im)}; }

// --- Rows of a panel.

// From the transform of the pairs, rows 0 .. h - 1, to twice the first half of the real numbers' transform, rows 0 .. h.
template <class T> void unfold_rows(T* panel, int64_t h, int64_t vectors, const T* roots) {
  using Panel = Columns<T>;
  const int64_t row = vectors * Panel::kPair;
  for (int64_t k = 0; k <= h / 2; ++k) {
    T *const low = panel + k * row, *const high = panel + (h - k) * row;
    const T* const other = k ? high : low;
    for (int64_t q = 0; q < row; q += Panel::kPair) {
      auto a = Panel::load(low + q), b = Panel::load(other + q);
      fold(a, b, Panel::number(roots + 2 * k));
      Panel::store(a, low + q);
      Panel::store(b, high + q);
    }
  }
}

// From the half, rows 0 .. h, to the pairs' transform, rows 0 .. h - 1, with swapped parts. The imaginary parts of rows 0
// and h count as 0.
template <class T> void fold_rows(T* panel, int64_t h, int64_t vectors, const T* roots) {
  using Panel = Columns<T>;
  const auto zero = hn::Zero(typename Panel::D());
  const int64_t row = vectors * Panel::kPair;
  for (int64_t k = 0; k <= h / 2; ++k) {
    T *const low = panel + k * row, *const high = panel + (h - k) * row;
    for (int64_t q = 0; q < row; q += Panel::kPair) {
      auto a = Panel::load(low + q), b = Panel::load(high + q);
      if (!k) a.im = b.im = zero;
      fold(a, b, conjugate(Panel::number(roots + 2 * k)));
      Panel::store({a.im, a.re}, low + q);
      if (k) Panel::store({b.im, b.re}, high + q);
    }
  }
}

// From the half, rows 0 .. n / 2, of an odd n to all rows, with swapped parts.
template <class T> void mirror_rows(T* panel, int64_t n, int64_t vectors) {
  using Panel = Columns<T>;
  const auto zero = hn::Zero(typename Panel::D());
  const int64_t row = vectors * Panel::kPair;
  for (int64_t k = 0; k <= n / 2; ++k)
    for (int64_t q = 0; q < row; q += Panel::kPair) {
      const auto a = Panel::load(panel + k * row + q);
      Panel::store({k ? a.im : zero, a.re}, panel + k * row + q);
      if (k) Panel::store({hn::Neg(a.im), a.re}, panel + (n - k) * row + q);
    }
}

// --- Lines of adjacent numbers.

// A single number.
template <class T> struct One {
  using D = hn::CappedTag<T, 1>;
  static HWY_INLINE Complexes<D> load(const T* p) { return {hn::Set(D(), p[0]), hn::Set(D(), p[1])}; }
  static HWY_INLINE void store(Complexes<D> c, T* p) {
    p[0] = hn::GetLane(c.re);
    p[1] = hn::GetLane(c.im);
  }
};

// Folds the numbers k and h - k of `from` for k from 1 on, and writes them to the same places of `to`, which may be `from`.
template <class T, bool before> void fold_inside(const T* from, T* to, int64_t h, const T* roots) {
  using Whole = Edges<T, false>;
  using D = typename Whole::D;
  constexpr int64_t kLanes = Whole::kLanes;
  int64_t k = 1;
  for (; 2 * (k + kLanes - 1) < h; k += kLanes) {
    const int64_t other = h - k - kLanes + 1;
    auto a = Whole::load(from + 2 * k), b = Whole::load(from + 2 * other), root = Whole::load(roots + 2 * k);
    b = {hn::Reverse(D(), b.re), hn::Reverse(D(), b.im)};
    fold(a, b, before ? conjugate(root) : root);
    Whole::store(a, to + 2 * k);
    Whole::store({hn::Reverse(D(), b.re), hn::Reverse(D(), b.im)}, to + 2 * other);
  }
  for (; 2 * k <= h; ++k) {
    auto a = One<T>::load(from + 2 * k), b = One<T>::load(from + 2 * (h - k)), root = One<T>::load(roots + 2 * k);
    fold(a, b, before ? conjugate(root) : root);
    One<T>::store(a, to + 2 * k);
    One<T>::store(b, to + 2 * (h - k));
  }
}

// As unfold_rows, in place.
template <class T> void unfold_line(T* line, int64_t h, const T* roots) {
  const T real = line[0], imaginary = line[1];
  fold_inside<T, false>(line, line, h, roots);
  line[0] = 2 * (real + imaginary);
  line[2 * h] = 2 * (real - imaginary);
  line[1] = line[2 * h + 1] = 0;
}
// As fold_rows, but the parts are not swapped.
template <class T> void fold_line(const T* half, T* line, int64_t h, const T* roots) {
  fold_inside<T, true>(half, line, h, roots);
  line[0] = half[0] + half[2 * h];
  line[1] = half[0] - half[2 * h];
}

}  // namespace plugrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
