// Folds of contiguous rows and columns; included once for each instruction set.
#if defined(PLUGRAD_CPU_FOLD_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PLUGRAD_CPU_FOLD_INL
#undef PLUGRAD_CPU_FOLD_INL
#else
#define PLUGRAD_CPU_FOLD_INL
#endif

#include <backends/cpu/math-inl.hpp>
#include <backends/cpu/reduction.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace plugrad::cpu::HWY_NAMESPACE {

// The error of a sum of blocks is carried along (Knuth's two-sum), so it does not grow with the number of blocks.
struct CarriedSum {
  double sum, rest;
};
inline void absorb(CarriedSum& s, double x) {
  const double next = s.sum + x, shown = next - s.sum;
  s.rest += (s.sum - (next - shown)) + (x - shown);
  s.sum = next;
}
inline void absorb(double& s, double x) { s += x; }  // of f32 blocks: far from its last place
inline void absorb(int64_t& s, int64_t x) { s = static_cast<int64_t>(static_cast<uint64_t>(s) + static_cast<uint64_t>(x)); }
inline double total(const CarriedSum& s) { return std::isfinite(s.sum) ? s.sum + s.rest : s.sum; }
inline double total(double s) { return s; }
inline int64_t total(int64_t s) { return s; }

template <class T> struct Sum {
  using Element = T;
  using Partial = std::conditional_t<std::is_same_v<T, double>, CarriedSum,
                                     std::conditional_t<std::is_same_v<T, float>, double, int64_t>>;
  static constexpr T kIdentity = 0;
  static constexpr bool kRounds = std::is_floating_point_v<T>;
  template <class V> static HWY_INLINE V combine(V a, V b) { return hn::Add(a, b); }
  static HWY_INLINE T combine_lanes(T a, T b) {
    if constexpr (kRounds) return a + b;
    else return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
  static Partial identity() { return {}; }
  static void take(Partial& p, T x) { absorb(p, x); }
  static void merge(Partial& p, const Partial& other) {
    if constexpr (std::is_same_v<T, double>) {
      absorb(p, other.sum);
      p.rest += other.rest;
    } else {
      absorb(p, other);
    }
  }
  static void store(char* out, const Partial& p, bool accumulate) {
    T& to = *reinterpret_cast<T*>(out);
    to = accumulate ? static_cast<T>(combine_lanes_wide(to, total(p))) : static_cast<T>(total(p));
  }
  template <class W> static W combine_lanes_wide(T a, W b) {
    if constexpr (kRounds) return static_cast<W>(a) + b;
    else return combine_lanes(a, b);
  }
};

template <class T, bool largest> struct Extreme {
  using Element = T;
  using Partial = T;
  static constexpr bool kFloating = std::is_floating_point_v<T>, kRounds = false;
  using Limits = std::numeric_limits<T>;
  static constexpr T kIdentity =
      kFloating ? (largest ? -Limits::infinity() : Limits::infinity()) : (largest ? Limits::min() : Limits::max());
  template <class V> static HWY_INLINE V combine(V a, V b) {
    const auto better = largest ? hn::Gt(b, a) : hn::Lt(b, a);
    if constexpr (kFloating) return hn::IfThenElse(hn::Or(better, hn::IsNaN(b)), b, a);  // NaN in a stays: nothing beats it
    else return hn::IfThenElse(better, b, a);
  }
  static HWY_INLINE T combine_lanes(T a, T b) { return (largest ? b > a : b < a) || b != b ? b : a; }
  static Partial identity() { return kIdentity; }
  static void take(Partial& p, T x) { p = combine_lanes(p, x); }
  static void merge(Partial& p, const Partial& other) { take(p, other); }
  static void store(char* out, const Partial& p, bool) { *reinterpret_cast<T*>(out) = p; }
};

template <class F> struct Folding {
  using T = typename F::Element;
  using Partial = typename F::Partial;
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  static constexpr int64_t kSteps = 16;  // additions to one lane before it is rounded off to the partial

  static HWY_INLINE T fold_lanes(V v) {
    const D d;
    if constexpr (F::kRounds) return hn::GetLane(hn::SumOfLanes(d, v));
    else return fold_halves(d, v);
  }
#if HWY_HAVE_SCALABLE || HWY_TARGET == HWY_SCALAR
  static HWY_INLINE T fold_halves(D d, V v) {
    HWY_ALIGN T lanes[HWY_MAX_BYTES / sizeof(T)];
    hn::Store(v, d, lanes);
    for (size_t n = hn::Lanes(d); n > 1; n /= 2)
      for (size_t i = 0; i < n / 2; ++i) lanes[i] = F::combine_lanes(lanes[i], lanes[i + n / 2]);
    return lanes[0];
  }
#else
  template <class Whole> static HWY_INLINE T fold_halves(Whole, hn::Vec<Whole> v) {
    if constexpr (hn::MaxLanes(Whole()) == 1) return hn::GetLane(v);
    else {
      const hn::Half<Whole> half;
      return fold_halves(half, F::combine(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
    }
  }
#endif

  static constexpr int64_t kBlock = kSteps * 8 * static_cast<int64_t>(hn::MaxLanes(D()));

  // Of at most kBlock elements where the fold rounds.
  static T block(const T* p, int64_t n) {
    const D d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    V a = hn::Set(d, F::kIdentity), b = a, c = a, e = a, f = a, g = a, h = a, k = a;
    int64_t i = 0;
    for (; i + 8 * lanes <= n; i += 8 * lanes) {
      a = F::combine(a, hn::LoadU(d, p + i));
      b = F::combine(b, hn::LoadU(d, p + i + lanes));
      c = F::combine(c, hn::LoadU(d, p + i + 2 * lanes));
      e = F::combine(e, hn::LoadU(d, p + i + 3 * lanes));
      f = F::combine(f, hn::LoadU(d, p + i + 4 * lanes));
      g = F::combine(g, hn::LoadU(d, p + i + 5 * lanes));
      h = F::combine(h, hn::LoadU(d, p + i + 6 * lanes));
      k = F::combine(k, hn::LoadU(d, p + i + 7 * lanes));
    }
    for (; i + lanes <= n; i += lanes) a = F::combine(a, hn::LoadU(d, p + i));
    if (i < n) b = F::combine(b, load_rest(d, p + i, n - i, n, F::kIdentity));
    a = F::combine(F::combine(a, b), F::combine(c, e));
    f = F::combine(F::combine(f, g), F::combine(h, k));
    return fold_lanes(F::combine(a, f));
  }

  // The same for fewer elements than fill all sums.
  static HWY_INLINE T short_block(const T* p, int64_t n) {
    const D d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    V a = hn::Set(d, F::kIdentity), b = a;
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes) a = F::combine(a, hn::LoadU(d, p + i));
    if (i < n) b = F::combine(b, load_rest(d, p + i, n - i, n, F::kIdentity));
    return fold_lanes(F::combine(a, b));
  }

  static void row(char* partial, const char* p, int64_t n) {
    const T* x = reinterpret_cast<const T*>(p);
    for (int64_t i = 0; i < n; i += kBlock)
      F::take(*reinterpret_cast<Partial*>(partial), block(x + i, std::min(kBlock, n - i)));
  }

  static void each_row(char* out, int64_t out_step, const char* p, int64_t row_step, int64_t rows, int64_t n,
                       bool accumulate) {
    const bool is_short = n < 8 * static_cast<int64_t>(hn::Lanes(D()));
    for (int64_t r = 0; r < rows; ++r, out += out_step, p += row_step) {
      Partial partial = F::identity();
      if (is_short) {
        F::take(partial, short_block(reinterpret_cast<const T*>(p), n));
        F::store(out, partial, accumulate);
        continue;
      }
      row(reinterpret_cast<char*>(&partial), p, n);
      F::store(out, partial, accumulate);
    }
  }

  template <int vectors> static HWY_INLINE void fold_strip(Partial* partials, const char* p, int64_t rows, int64_t stride) {
    const D d;
    const size_t lanes = hn::Lanes(d);
    HWY_ALIGN T sums[vectors * HWY_MAX_BYTES / sizeof(T)];
    V a = hn::Set(d, F::kIdentity), b = a, c = a, e = a;
    for (int64_t r = 0; r < rows; ++r, p += stride) {
      const T* x = reinterpret_cast<const T*>(p);
      a = F::combine(a, hn::LoadU(d, x));
      if constexpr (vectors == 4) {
        b = F::combine(b, hn::LoadU(d, x + lanes));
        c = F::combine(c, hn::LoadU(d, x + 2 * lanes));
        e = F::combine(e, hn::LoadU(d, x + 3 * lanes));
      }
    }
    hn::Store(a, d, sums);
    if constexpr (vectors == 4) {
      hn::Store(b, d, sums + lanes);
      hn::Store(c, d, sums + 2 * lanes);
      hn::Store(e, d, sums + 3 * lanes);
    }
    for (size_t i = 0; i < vectors * lanes; ++i) F::take(partials[i], sums[i]);
  }

  static void columns(char* to, const char* p, int64_t rows, int64_t stride, int64_t n) {
    Partial* partials = reinterpret_cast<Partial*>(to);
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(D()));
    for (int64_t r = 0; r < rows; r += kBlockRows) {
      const int64_t some = std::min(kBlockRows, rows - r);
      const char* q = p + r * stride;
      int64_t c = 0;
      for (; c + 4 * lanes <= n; c += 4 * lanes)
        fold_strip<4>(partials + c, q + c * static_cast<int64_t>(sizeof(T)), some, stride);
      for (; c + lanes <= n; c += lanes) fold_strip<1>(partials + c, q + c * static_cast<int64_t>(sizeof(T)), some, stride);
      for (; c < n; ++c) {
        T sum = F::kIdentity;
        for (int64_t i = 0; i < some; ++i) sum = F::combine_lanes(sum, reinterpret_cast<const T*>(q + i * stride)[c]);
        F::take(partials[c], sum);
      }
    }
  }

  static void init(char* partials, int64_t n) {
    for (int64_t i = 0; i < n; ++i) reinterpret_cast<Partial*>(partials)[i] = F::identity();
  }
  static void merge(char* partials, const char* others, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      F::merge(reinterpret_cast<Partial*>(partials)[i], reinterpret_cast<const Partial*>(others)[i]);
  }
  static void store(char* out, const char* partial, bool accumulate) {
    F::store(out, *reinterpret_cast<const Partial*>(partial), accumulate);
  }

  // --- For fusions.

  static void block_of(char* element, const char* p, int64_t n) {
    *reinterpret_cast<T*>(element) = block(reinterpret_cast<const T*>(p), n);
  }
  static void start(char* elements, int64_t n) { std::fill_n(reinterpret_cast<T*>(elements), n, F::kIdentity); }
  static void add_rows(char* elements, const char* p, int64_t rows, int64_t stride, int64_t n) {
    const D d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    T* const sums = reinterpret_cast<T*>(elements);
    int64_t c = 0;
    for (; c + lanes <= n; c += lanes) {
      V sum = hn::LoadU(d, sums + c);
      for (int64_t r = 0; r < rows; ++r) sum = F::combine(sum, hn::LoadU(d, reinterpret_cast<const T*>(p + r * stride) + c));
      hn::StoreU(sum, d, sums + c);
    }
    for (; c < n; ++c)
      for (int64_t r = 0; r < rows; ++r) sums[c] = F::combine_lanes(sums[c], reinterpret_cast<const T*>(p + r * stride)[c]);
  }
  static void take(char* partials, const char* elements, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      F::take(reinterpret_cast<Partial*>(partials)[i], reinterpret_cast<const T*>(elements)[i]);
  }
  static constexpr Reduction kKind{sizeof(T), sizeof(Partial), init,     row,   columns,  merge, store,
                                   each_row,  kBlock,          block_of, start, add_rows, take};
};

}  // namespace plugrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
