// Vectorised passes over lines, for normalisation; included once for each instruction set.
#if defined(PLUGRAD_CPU_NORM_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PLUGRAD_CPU_NORM_INL
#undef PLUGRAD_CPU_NORM_INL
#else
#define PLUGRAD_CPU_NORM_INL
#endif

#include <backends/cpu/fold-inl.hpp>

HWY_BEFORE_NAMESPACE();
namespace plugrad::cpu::HWY_NAMESPACE {

inline constexpr int64_t kSegment = 2048;  // elements summed in T before the sum is rounded off to double

// (x - mean - rest) scale is an element's normalised value: mean and rest together are more exact than T.
template <class T> struct Scaling {
  T mean, rest, scale;
  Scaling(double average, double variance, double epsilon)
      : mean(static_cast<T>(average)), rest(static_cast<T>(average - static_cast<double>(mean))),
        scale(static_cast<T>(1 / std::sqrt(variance + epsilon))) {}
  Scaling(T known_mean, T known_scale) : mean(known_mean), rest(0), scale(known_scale) {}
  T of(T x) const { return ((x - mean) - rest) * scale; }
  template <class D, class V> HWY_INLINE V of(D d, V x) const {
    return hn::Mul(hn::Sub(hn::Sub(x, hn::Set(d, mean)), hn::Set(d, rest)), hn::Set(d, scale));
  }
};

// The sums of two products over a line, for its gradient.
struct GradientSums {
  double grads = 0, products = 0;
};

template <class T> struct Norm {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  static int64_t lanes() { return static_cast<int64_t>(hn::Lanes(D())); }

  // Mean and sum of squared deviations of the elements taken so far. Segments are merged after Chan, Golub and LeVeque,
  // "Updating formulae and a pairwise algorithm for computing sample variances", 1979.
  struct Moments {
    double count = 0, mean = 0, squares = 0;

    void take(const T* x, int64_t n) {
      for (int64_t i = 0; i < n; i += kSegment) take_segment(x + i, std::min(kSegment, n - i));
    }
    double variance() const { return squares / count; }

   private:
    void take_segment(const T* x, int64_t n) {
      const double size = static_cast<double>(n), guess = total(x, n) / size;
      const auto [sum, sum_of_squares] = deviations(x, n, static_cast<T>(guess));
      const double average = static_cast<double>(static_cast<T>(guess)) + sum / size, all = count + size;
      const double apart = average - mean;
      squares += sum_of_squares - sum * sum / size + (count > 0 ? apart * apart * (count * size / all) : 0);
      mean = count > 0 ? mean + apart * (size / all) : average;
      count = all;
    }
  };

  static double total(const T* x, int64_t n) {
    typename Sum<T>::Partial sum = Sum<T>::identity();
    Folding<Sum<T>>::row(reinterpret_cast<char*>(&sum), reinterpret_cast<const char*>(x), n);
    return HWY_NAMESPACE::total(sum);
  }

  // Of a segment: the sums of x - centre and of its square.
  static std::pair<double, double> deviations(const T* x, int64_t n, T centre) {
    const D d;
    const V c = hn::Set(d, centre);
    V a = hn::Zero(d), b = a, p = a, q = a;
    int64_t i = 0;
    for (; i + 2 * lanes() <= n; i += 2 * lanes()) {
      const V u = hn::Sub(hn::LoadU(d, x + i), c), v = hn::Sub(hn::LoadU(d, x + i + lanes()), c);
      a = hn::Add(a, u);
      b = hn::Add(b, v);
      p = hn::MulAdd(u, u, p);
      q = hn::MulAdd(v, v, q);
    }
    for (; i < n; i += lanes()) {
      const V u = hn::Sub(i + lanes() <= n ? hn::LoadU(d, x + i) : load_rest(d, x + i, n - i, n, centre), c);
      a = hn::Add(a, u);
      p = hn::MulAdd(u, u, p);
    }
    return {lane_sum(hn::Add(a, b)), lane_sum(hn::Add(p, q))};
  }
  static double lane_sum(V v) { return static_cast<double>(Folding<Sum<T>>::fold_lanes(v)); }

  static double mean_of_squares(const T* x, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i += kSegment) sum += deviations(x + i, std::min(kSegment, n - i), T(0)).second;
    return sum / static_cast<double>(n);
  }

  // Stores of(i) for vectors over n elements, at least a vector of them. The last vector overlaps its predecessor.
  template <bool streamed, class Of> static HWY_INLINE void cover(T* out, int64_t n, Of of) {
    const D d;
    if (streamed && n % lanes() == 0 && is_aligned(out)) {
      for (int64_t i = 0; i < n; i += lanes()) hn::Stream(of(i), d, out + i);
      return;
    }
    for (int64_t i = 0; i < n; i += lanes()) {
      i = std::min(i, n - lanes());
      hn::StoreU(of(i), d, out + i);
    }
  }
  static bool is_aligned(const T* p) { return reinterpret_cast<uintptr_t>(p) % (hn::Lanes(D()) * sizeof(T)) == 0; }

  // y = normalised weight + bias; without a bias where it is null. out overlaps nothing.
  template <bool streamed>
  static void scale_line(T* out, const T* x, const T* weight, const T* bias, int64_t n, const Scaling<T>& s) {
    const D d;
    if (n < lanes()) {
      for (int64_t i = 0; i < n; ++i) out[i] = s.of(x[i]) * weight[i] + (bias ? bias[i] : T(0));
    } else if (bias) {
      cover<streamed>(out, n, [&](int64_t i) HWY_ATTR {
        return hn::MulAdd(s.of(d, hn::LoadU(d, x + i)), hn::LoadU(d, weight + i), hn::LoadU(d, bias + i));
      });
    } else {
      cover<streamed>(out, n,
                      [&](int64_t i) HWY_ATTR { return hn::Mul(s.of(d, hn::LoadU(d, x + i)), hn::LoadU(d, weight + i)); });
    }
  }
  // The same with one weight and one bias.
  template <bool streamed> static void scale_channel(T* out, const T* x, T weight, T bias, int64_t n, const Scaling<T>& s) {
    const D d;
    const V w = hn::Set(d, weight), b = hn::Set(d, bias);
    if (n < lanes())
      for (int64_t i = 0; i < n; ++i) out[i] = s.of(x[i]) * weight + bias;
    else cover<streamed>(out, n, [&](int64_t i) HWY_ATTR { return hn::MulAdd(s.of(d, hn::LoadU(d, x + i)), w, b); });
  }

  // Adds g = grad times weight, and g times the normalised x, to the sums. Adds grad times the normalised x to weight_sums,
  // and grad to bias_sums, which may be null.
  static void line_sums(const T* grad, const T* x, const T* weight, int64_t n, const Scaling<T>& s, T* weight_sums,
                        T* bias_sums, GradientSums& sums) {
    const D d;
    for (int64_t first = 0; first < n; first += kSegment) {
      const int64_t end = std::min(n, first + kSegment);
      V a = hn::Zero(d), p = a;
      int64_t i = first;
      for (; i + lanes() <= end; i += lanes()) {
        const V g = hn::LoadU(d, grad + i), normal = s.of(d, hn::LoadU(d, x + i));
        const V inner = hn::Mul(g, hn::LoadU(d, weight + i));
        a = hn::Add(a, inner);
        p = hn::MulAdd(inner, normal, p);
        hn::StoreU(hn::MulAdd(g, normal, hn::LoadU(d, weight_sums + i)), d, weight_sums + i);
        if (bias_sums) hn::StoreU(hn::Add(g, hn::LoadU(d, bias_sums + i)), d, bias_sums + i);
      }
      sums.grads += lane_sum(a);
      sums.products += lane_sum(p);
      for (; i < end; ++i) {
        const T normal = s.of(x[i]), inner = grad[i] * weight[i];
        sums.grads += static_cast<double>(inner);
        sums.products += static_cast<double>(inner) * static_cast<double>(normal);
        weight_sums[i] += grad[i] * normal;
        if (bias_sums) bias_sums[i] += grad[i];
      }
    }
  }
  // The sums of grad and of grad times the normalised x.
  static void channel_sums(const T* grad, const T* x, int64_t n, const Scaling<T>& s, GradientSums& sums) {
    const D d;
    for (int64_t first = 0; first < n; first += kSegment) {
      const int64_t end = std::min(n, first + kSegment);
      V a = hn::Zero(d), p = a, b = a, q = a;
      int64_t i = first;
      for (; i + 2 * lanes() <= end; i += 2 * lanes()) {
        const V g = hn::LoadU(d, grad + i), h = hn::LoadU(d, grad + i + lanes());
        a = hn::Add(a, g);
        b = hn::Add(b, h);
        p = hn::MulAdd(g, s.of(d, hn::LoadU(d, x + i)), p);
        q = hn::MulAdd(h, s.of(d, hn::LoadU(d, x + i + lanes())), q);
      }
      for (; i < end; i += lanes()) {
        const bool whole = i + lanes() <= end;
        const V g = whole ? hn::LoadU(d, grad + i) : load_rest(d, grad + i, end - i, end, T(0));
        const V v = whole ? hn::LoadU(d, x + i) : load_rest(d, x + i, end - i, end, s.mean);
        a = hn::Add(a, g);
        p = hn::MulAdd(g, s.of(d, v), p);
      }
      sums.grads += lane_sum(hn::Add(a, b));
      sums.products += lane_sum(hn::Add(p, q));
    }
  }

  // scale (grad weight - means.grads - normalised means.products). out overlaps nothing.
  template <bool streamed>
  static void line_gradient(T* out, const T* grad, const T* x, const T* weight, int64_t n, const Scaling<T>& s,
                            const GradientSums& means) {
    const D d;
    const T first = static_cast<T>(means.grads), second = static_cast<T>(means.products);
    const V a = hn::Set(d, first), b = hn::Set(d, second), scale = hn::Set(d, s.scale);
    if (n < lanes()) {
      for (int64_t i = 0; i < n; ++i) out[i] = s.scale * (grad[i] * weight[i] - first - s.of(x[i]) * second);
      return;
    }
    cover<streamed>(out, n, [&](int64_t i) HWY_ATTR {
      const V inner = hn::MulSub(hn::LoadU(d, grad + i), hn::LoadU(d, weight + i), a);
      return hn::Mul(scale, hn::NegMulAdd(s.of(d, hn::LoadU(d, x + i)), b, inner));
    });
  }
  // factor (grad - means.grads - normalised means.products)
  template <bool streamed>
  static void channel_gradient(T* out, const T* grad, const T* x, T factor, int64_t n, const Scaling<T>& s,
                               const GradientSums& means) {
    const D d;
    const T first = static_cast<T>(means.grads), second = static_cast<T>(means.products);
    const V a = hn::Set(d, first), b = hn::Set(d, second), f = hn::Set(d, factor);
    if (n < lanes()) {
      for (int64_t i = 0; i < n; ++i) out[i] = factor * (grad[i] - first - s.of(x[i]) * second);
      return;
    }
    cover<streamed>(out, n, [&](int64_t i) HWY_ATTR {
      return hn::Mul(f, hn::NegMulAdd(s.of(d, hn::LoadU(d, x + i)), b, hn::Sub(hn::LoadU(d, grad + i), a)));
    });
  }
};

}  // namespace plugrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
