// Passes over one row of logits, vectorised; included once for each instruction set.
#if defined(PLUGRAD_CPU_SOFTMAX_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PLUGRAD_CPU_SOFTMAX_INL
#undef PLUGRAD_CPU_SOFTMAX_INL
#else
#define PLUGRAD_CPU_SOFTMAX_INL
#endif

#include <backends/cpu/fold-inl.hpp>
#include <backends/cpu/streaming.hpp>

#include <hwy/cache_control.h>

HWY_BEFORE_NAMESPACE();
namespace plugrad::cpu::HWY_NAMESPACE {

template <class T> struct Softmax {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  using Largest = Extreme<T, true>;
  static constexpr int64_t kBlock = 512;  // summed in T before it is rounded off

  static T largest(const T* x, int64_t n) { return Folding<Largest>::block(x, n); }

  static T total(const T* x, int64_t n) {
    typename Sum<T>::Partial sum = Sum<T>::identity();
    Folding<Sum<T>>::row(reinterpret_cast<char*>(&sum), reinterpret_cast<const char*>(x), n);
    return static_cast<T>(HWY_NAMESPACE::total(sum));
  }

  // sum of e^(x - m)
  static T sum_of_powers(const T* x, int64_t n, T m) {
    const D d;
    const V shift = hn::Set(d, m);
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    double sum = 0;
    for (int64_t first = 0; first < n; first += kBlock) {
      const int64_t end = std::min(n, first + kBlock);
      V part = hn::Zero(d);
      int64_t i = first;
      for (; i + lanes <= end; i += lanes) part = hn::Add(part, exp(d, hn::Sub(hn::LoadU(d, x + i), shift)));
      if (const int64_t rest = end - i; rest > 0) {
        const V e = exp(d, hn::Sub(load_rest(d, x + i, rest, end, m), shift));
        const auto absent = end < lanes ? hn::Not(hn::FirstN(d, static_cast<size_t>(rest)))
                                        : hn::FirstN(d, static_cast<size_t>(lanes - rest));
        part = hn::Add(part, hn::IfThenElse(absent, hn::Zero(d), e));
      }
      sum += static_cast<double>(Folding<Sum<T>>::fold_lanes(part));
    }
    return static_cast<T>(sum);
  }

  // ln sum e^x, as m + ln sum e^(x - m); both parts are wanted.
  static T log_sum(const T* x, int64_t n, T& m) {
    m = largest(x, n);
    const D d;
    return hn::GetLane(log(d, hn::Set(d, sum_of_powers(x, n, m))));
  }

  static void log_softmax(T* out, const T* x, int64_t n) {
    T m;
    const T rest = log_sum(x, n, m);
    subtract(out, x, n, m, rest);
  }

  static void subtract(T* out, const T* x, int64_t n, T m, T rest) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) out[i] = (x[i] - m) - rest;
  }

  // Stores e^(x - m) and returns the sum; out does not overlap x. While it computes, memory delivers the next lines, `ahead`
  // elements further.
  static double powers(T* out, const T* x, int64_t n, T m, int64_t ahead) {
    const D d;
    const V shift = hn::Set(d, m);
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    double sum = 0;
    for (int64_t first = 0; first < n; first += kBlock) {
      const int64_t end = std::min(n, first + kBlock);
      V part = hn::Zero(d);
      int64_t i = first;
      for (; i + lanes <= end; i += lanes) {
        hwy::Prefetch(x + i + ahead);
        const V e = exp(d, hn::Sub(hn::LoadU(d, x + i), shift));
        part = hn::Add(part, e);
        hn::StoreU(e, d, out + i);
      }
      if (const int64_t rest = end - i; rest > 0) part = hn::Add(part, rest_of_powers(out + i, x + i, rest, shift));
      sum += static_cast<double>(Folding<Sum<T>>::fold_lanes(part));
    }
    return sum;
  }
  // Of less than a vector: lanes beyond the end are 0.
  static V rest_of_powers(T* out, const T* x, int64_t rest, V shift) {
    const D d;
    const size_t some = static_cast<size_t>(rest);
    const V e = exp(d, hn::Sub(load_part(d, x, some, hn::GetLane(shift)), shift));
    store_part(d, e, out, some);
    return hn::IfThenElse(hn::FirstN(d, some), e, hn::Zero(d));
  }

  // out = values factor
  static void scale(T* out, const T* values, int64_t n, T factor, bool streamed) {
    const D d;
    const V f = hn::Set(d, factor);
    if (streamed && can_stream(out, n)) {
      for (int64_t i = 0; i < n; i += static_cast<int64_t>(hn::Lanes(d)))
        hn::Stream(hn::Mul(hn::LoadU(d, values + i), f), d, out + i);
      return;
    }
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) out[i] = values[i] * factor;
  }
  static bool can_stream(const T* out, int64_t n) {
    const size_t lanes = hn::Lanes(D());
    return static_cast<size_t>(n) % lanes == 0 && reinterpret_cast<uintptr_t>(out) % (lanes * sizeof(T)) == 0;
  }

  // streamed: the output's stores bypass the caches. The powers of a short line then wait in a buffer.
  static void softmax(T* out, const T* x, int64_t n, bool streamed) {
    constexpr int64_t kBuffer = 2048;
    alignas(64) T buffer[kBuffer];
    T* const between = streamed && n <= kBuffer ? buffer : out;
    const double sum = powers(between, x, n, largest(x, n), streamed ? kReadAhead / int64_t{sizeof(T)} : 0);
    scale(out, between, n, static_cast<T>(1 / sum), between == buffer);
  }

  // sum of grad y
  static double product(const T* grad, const T* y, int64_t n) {
    const D d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    double sum = 0;
    for (int64_t first = 0; first < n; first += kBlock) {
      const int64_t end = std::min(n, first + kBlock);
      V part = hn::Zero(d);
      int64_t i = first;
      for (; i + lanes <= end; i += lanes) part = hn::MulAdd(hn::LoadU(d, grad + i), hn::LoadU(d, y + i), part);
      if (i < end)
        part = hn::MulAdd(load_rest(d, grad + i, end - i, end, T(0)), load_rest(d, y + i, end - i, end, T(0)), part);
      sum += static_cast<double>(Folding<Sum<T>>::fold_lanes(part));
    }
    return sum;
  }
  // y (grad - sum); out overlaps nothing
  static void softmax_backward(T* out, const T* grad, const T* y, int64_t n, T sum, bool streamed) {
    const D d;
    const V s = hn::Set(d, sum);
    if (streamed && can_stream(out, n)) {
      for (int64_t i = 0; i < n; i += static_cast<int64_t>(hn::Lanes(d)))
        hn::Stream(hn::Mul(hn::LoadU(d, y + i), hn::Sub(hn::LoadU(d, grad + i), s)), d, out + i);
      return;
    }
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) out[i] = y[i] * (grad[i] - sum);
  }

  // grad - e^y sum(grad); out overlaps nothing
  static void backward(T* out, const T* grad, const T* y, int64_t n, T sum) {
    const D d;
    const V factor = hn::Set(d, sum);
    const auto of = [&](V g, V v) HWY_ATTR { return hn::NegMulAdd(exp(d, v), factor, g); };
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    if (n < lanes)
      return store_part(d,
                        of(load_part(d, grad, static_cast<size_t>(n), T(0)), load_part(d, y, static_cast<size_t>(n), T(0))),
                        out, static_cast<size_t>(n));
    for (int64_t i = 0; i < n; i += lanes) {
      i = std::min(i, n - lanes);
      hn::StoreU(of(hn::LoadU(d, grad + i), hn::LoadU(d, y + i)), d, out + i);
    }
  }

  // scale e^(x - lse); out overlaps nothing
  static void scaled_powers(T* out, const T* x, int64_t n, T lse, T scale) {
    const D d;
    const V shift = hn::Set(d, lse), factor = hn::Set(d, scale);
    const auto of = [&](V v) HWY_ATTR { return hn::Mul(exp(d, hn::Sub(v, shift)), factor); };
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    if (n < lanes) return store_part(d, of(load_part(d, x, static_cast<size_t>(n), lse)), out, static_cast<size_t>(n));
    for (int64_t i = 0; i < n; i += lanes) {
      i = std::min(i, n - lanes);
      hn::StoreU(of(hn::LoadU(d, x + i)), d, out + i);
    }
  }
};

}  // namespace plugrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
