// Passes over one row of logits, vectorised; included once for each instruction set.
#if defined(PLUGRAD_CPU_SOFTMAX_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PLUGRAD_CPU_SOFTMAX_INL
#undef PLUGRAD_CPU_SOFTMAX_INL
#else
#define PLUGRAD_CPU_SOFTMAX_INL
#endif

#include <backends/cpu/fold-inl.hpp>

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
