// Fourier transforms of columns. A panel has n rows of the same number of vectors of complex numbers, a vector of real parts
// followed by one of imaginary parts, and is transformed column by column: Stockham's passes leave the rows in order
// (Van Loan, "Computational frameworks for the fast Fourier transform", 1992). Included once for each instruction set.
#if defined(PLUGRAD_CPU_FOURIER_PASSES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PLUGRAD_CPU_FOURIER_PASSES_INL
#undef PLUGRAD_CPU_FOURIER_PASSES_INL
#else
#define PLUGRAD_CPU_FOURIER_PASSES_INL
#endif

#include <backends/cpu/fourier_plan.hpp>

#include <hwy/highway.h>

#include <cstdint>
#include <utility>
#include <vector>

HWY_BEFORE_NAMESPACE();
namespace plugrad::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A vector of complex numbers.
template <class D> struct Complexes {
  hn::Vec<D> re, im;
};
template <class D> HWY_INLINE Complexes<D> plus(Complexes<D> a, Complexes<D> b) {
  return {hn::Add(a.re, b.re), hn::Add(a.im, b.im)};
}
template <class D> HWY_INLINE Complexes<D> minus(Complexes<D> a, Complexes<D> b) {
  return {hn::Sub(a.re, b.re), hn::Sub(a.im, b.im)};
}
template <class D> HWY_INLINE Complexes<D> times(Complexes<D> a, Complexes<D> b) {
  return {hn::NegMulAdd(a.im, b.im, hn::Mul(a.re, b.re)), hn::MulAdd(a.im, b.re, hn::Mul(a.re, b.im))};
}
template <class D> HWY_INLINE Complexes<D> scaled(Complexes<D> a, hn::Vec<D> s) {
  return {hn::Mul(a.re, s), hn::Mul(a.im, s)};
}
// a + s b, for a real s.
template <class D> HWY_INLINE Complexes<D> plus_scaled(Complexes<D> a, Complexes<D> b, hn::Vec<D> s) {
  return {hn::MulAdd(b.re, s, a.re), hn::MulAdd(b.im, s, a.im)};
}
// a - i b and a + i b.
template <class D> HWY_INLINE Complexes<D> minus_i(Complexes<D> a, Complexes<D> b) {
  return {hn::Add(a.re, b.im), hn::Sub(a.im, b.re)};
}
template <class D> HWY_INLINE Complexes<D> plus_i(Complexes<D> a, Complexes<D> b) {
  return {hn::Sub(a.re, b.im), hn::Add(a.im, b.re)};
}

// Transforms of `radix` numbers, in place.
template <class T> struct Butterflies {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  using C = Complexes<D>;
  static HWY_INLINE V number(double x) { return hn::Set(D(), static_cast<T>(x)); }

  static HWY_INLINE void two(C& a, C& b) {
    const C sum = plus(a, b);
    b = minus(a, b);
    a = sum;
  }
  static HWY_INLINE void four(C& a, C& b, C& c, C& d) {
    two(a, c);
    two(b, d);
    const C first = plus(a, b), second = minus_i(c, d), third = minus(a, b), fourth = plus_i(c, d);
    a = first, b = second, c = third, d = fourth;
  }
  template <int radix> static HWY_INLINE void run(C* x) {
    if constexpr (radix == 2) two(x[0], x[1]);
    else if constexpr (radix == 3) three(x);
    else if constexpr (radix == 4) four(x[0], x[1], x[2], x[3]);
    else if constexpr (radix == 5) five(x);
    else eight(x);
  }
  static HWY_INLINE void three(C* x) {
    const C sum = plus(x[1], x[2]), difference = scaled(minus(x[1], x[2]), number(0.86602540378443864676));
    const C middle = plus_scaled(x[0], sum, number(-0.5));
    x[0] = plus(x[0], sum);
    x[1] = minus_i(middle, difference);
    x[2] = plus_i(middle, difference);
  }
  static HWY_INLINE void five(C* x) {
    const V c1 = number(0.30901699437494742410), c2 = number(-0.80901699437494742410);
    const V s1 = number(0.95105651629515357212), s2 = number(0.58778525229247312917);
    const C a = plus(x[1], x[4]), b = plus(x[2], x[3]), c = minus(x[1], x[4]), d = minus(x[2], x[3]);
    const C even1 = plus_scaled(plus_scaled(x[0], a, c1), b, c2), even2 = plus_scaled(plus_scaled(x[0], a, c2), b, c1);
    const C odd1 = plus_scaled(scaled(c, s1), d, s2), odd2 = plus_scaled(scaled(c, s2), d, hn::Neg(s1));
    x[0] = plus(x[0], plus(a, b));
    x[1] = minus_i(even1, odd1);
    x[4] = plus_i(even1, odd1);
    x[2] = minus_i(even2, odd2);
    x[3] = plus_i(even2, odd2);
  }
  static HWY_INLINE void eight(C* x) {
    four(x[0], x[2], x[4], x[6]);
    four(x[1], x[3], x[5], x[7]);
    const V half = number(0.70710678118654752440);
    x[3] = scaled(C{hn::Add(x[3].re, x[3].im), hn::Sub(x[3].im, x[3].re)}, half);           // times e^(-pi i / 4)
    x[5] = C{x[5].im, hn::Neg(x[5].re)};                                                    // times -i
    x[7] = scaled(C{hn::Sub(x[7].im, x[7].re), hn::Neg(hn::Add(x[7].re, x[7].im))}, half);  // times e^(-3 pi i / 4)
    const C even[4] = {x[0], x[2], x[4], x[6]}, odd[4] = {x[1], x[3], x[5], x[7]};
    for (int i = 0; i < 4; ++i) {
      x[i] = plus(even[i], odd[i]);
      x[i + 4] = minus(even[i], odd[i]);
    }
  }
};

// The transform of columns of a length with small factors.
template <class T> class Columns {
 public:
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  using C = Complexes<D>;
  static constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(D()));
  static constexpr int64_t kPair = 2 * kLanes;  // numbers of a vector of complex numbers
  static HWY_INLINE C load(const T* p) { return {hn::LoadU(D(), p), hn::LoadU(D(), p + kLanes)}; }
  static HWY_INLINE void store(C c, T* p) {
    hn::StoreU(c.re, D(), p);
    hn::StoreU(c.im, D(), p + kLanes);
  }
  static HWY_INLINE C number(const T* p) { return {hn::Set(D(), p[0]), hn::Set(D(), p[1])}; }

  explicit Columns(int64_t n) : n_(n) {
    int64_t length = n, done = 1;
    for (const int radix : radices_of(n)) {
      length /= radix;
      stages_.push_back({radix, length, done, numbers_.size()});
      for (int64_t p = 0; p < length; ++p)
        for (int i = 1; i < radix; ++i) append(p * i, length * radix);
      for (int i = 0; radix > 5 && radix != 8 && i < radix; ++i) append(i, radix);
      done *= radix;
    }
  }

  // Transforms the columns of x (n, vectors), whose rows are `step` vectors apart. Writes to a and b by turns, which hold n
  // rows, and returns the one with the result, or x for n = 1. b may be x.
  const T* run(const T* x, int64_t step, T* a, T* b, int64_t vectors) const {
    for (const Stage& stage : stages_) {
      pass(stage, x, stage.done == 1 ? step : stage.done * vectors, a, stage.done * vectors);
      x = a;
      std::swap(a, b);
    }
    return x;
  }

 private:
  struct Stage {
    int radix;
    int64_t length, done;  // the remaining length, and the product of the earlier radices
    size_t roots;          // where its roots of unity begin
  };

  void append(int64_t k, int64_t n) {
    const std::complex<double> root = root_of_unity(k % n, n);
    numbers_.push_back(static_cast<T>(root.real()));
    numbers_.push_back(static_cast<T>(root.imag()));
  }

  void pass(const Stage& stage, const T* x, int64_t step, T* y, int64_t width) const {
    switch (stage.radix) {
      case 2: return pass_of<2>(stage, x, step, y, width);
      case 3: return pass_of<3>(stage, x, step, y, width);
      case 4: return pass_of<4>(stage, x, step, y, width);
      case 5: return pass_of<5>(stage, x, step, y, width);
      case 8: return pass_of<8>(stage, x, step, y, width);
      default: return pass_of_any(stage, x, step, y, width);
    }
  }

  // x has rows of `width` vectors, `step` vectors apart, and y rows of `width`. Row p radix + i of y is number i of the
  // transform of the rows p, p + length, .. of x, times the root number p i.
  template <int radix> void pass_of(const Stage& stage, const T* x, int64_t step, T* y, int64_t width) const {
    const T* roots = numbers_.data() + stage.roots;
    const int64_t apart = stage.length * step * kPair;
    for (int64_t p = 0; p < stage.length; ++p, roots += 2 * (radix - 1)) {
      const T* from = x + p * step * kPair;
      T* to = y + p * radix * width * kPair;
      C w[radix - 1];
      for (int i = 1; i < radix; ++i) w[i - 1] = number(roots + 2 * (i - 1));
      for (int64_t q = 0; q < width; ++q, from += kPair, to += kPair) {
        C c[radix];
        for (int i = 0; i < radix; ++i) c[i] = load(from + i * apart);
        Butterflies<T>::template run<radix>(c);
        store(c[0], to);
        for (int i = 1; i < radix; ++i) store(p ? times(c[i], w[i - 1]) : c[i], to + i * width * kPair);
      }
    }
  }

  // The transform of an odd prime number of rows by its definition, with the two conjugate roots at a time.
  void pass_of_any(const Stage& stage, const T* x, int64_t step, T* y, int64_t width) const {
    const int radix = stage.radix;
    const T* roots = numbers_.data() + stage.roots;
    const T* circle = roots + 2 * (radix - 1) * stage.length;
    for (int64_t p = 0; p < stage.length; ++p, roots += 2 * (radix - 1)) {
      for (int64_t q = 0; q < width; ++q) {
        C sums[kLargestRadix / 2], differences[kLargestRadix / 2];
        const C first = load(x + (p * step + q) * kPair);
        C all = first;
        for (int i = 1; i <= radix / 2; ++i) {
          const C low = load(x + ((p + i * stage.length) * step + q) * kPair);
          const C high = load(x + ((p + (radix - i) * stage.length) * step + q) * kPair);
          sums[i - 1] = plus(low, high);
          differences[i - 1] = minus(low, high);
          all = plus(all, sums[i - 1]);
        }
        T* to = y + (p * radix * width + q) * kPair;
        store(all, to);
        for (int i = 1; i <= radix / 2; ++i) {
          C even = first, odd{hn::Zero(D()), hn::Zero(D())};
          for (int j = 1; j <= radix / 2; ++j) {
            const C root = number(circle + 2 * (i * j % radix));
            even = plus_scaled(even, sums[j - 1], root.re);
            odd = plus_scaled(odd, differences[j - 1], root.im);
          }
          store(times(plus_i(even, odd), number(roots + 2 * (i - 1))), to + i * width * kPair);
          store(times(minus_i(even, odd), number(roots + 2 * (radix - i - 1))), to + (radix - i) * width * kPair);
        }
      }
    }
  }

  int64_t n_;
  std::vector<Stage> stages_;
  std::vector<T> numbers_;
};

}  // namespace plugrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
