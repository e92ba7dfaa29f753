// Copies of contiguous and evenly spaced elements; included once for each instruction set.
#if defined(PLUGRAD_CPU_RUNS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PLUGRAD_CPU_RUNS_INL
#undef PLUGRAD_CPU_RUNS_INL
#else
#define PLUGRAD_CPU_RUNS_INL
#endif

#include <backends/cpu/math-inl.hpp>

HWY_BEFORE_NAMESPACE();
namespace plugrad::cpu::HWY_NAMESPACE {

template <class T> struct Runs {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  static int64_t lanes() { return static_cast<int64_t>(hn::Lanes(D())); }

  // The first `count` elements, fewer than a vector, and zeros behind them.
  static HWY_INLINE V load_few(const T* from, int64_t count) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
    return hn::MaskedLoad(hn::FirstN(D(), static_cast<size_t>(count)), D(), from);
#else
    return load_part(D(), from, static_cast<size_t>(count), T(0));
#endif
  }
  static HWY_INLINE void store_few(V v, T* to, int64_t count) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
    hn::BlendedStore(v, hn::FirstN(D(), static_cast<size_t>(count)), D(), to);
#else
    store_part(D(), v, to, static_cast<size_t>(count));
#endif
  }

  // count elements, at least one
  static HWY_INLINE void copy_run(T* to, const T* from, int64_t count) {
    const D d;
    const int64_t wide = lanes();
    if (count < wide) return store_few(load_few(from, count), to, count);
    for (int64_t i = 0; i + wide < count; i += wide) hn::StoreU(hn::LoadU(d, from + i), d, to + i);
    hn::StoreU(hn::LoadU(d, from + count - wide), d, to + count - wide);
  }
#if HWY_TARGET != HWY_SCALAR
  // Every second element: `count` of them, at most a vector.
  static HWY_INLINE void copy_even(T* to, const T* from, int64_t count) {
    const D d;
    const int64_t wide = lanes(), all = 2 * count - 1;
    const V low = all < wide ? load_few(from, all) : hn::LoadU(d, from);
    const V high = all <= wide ? hn::Zero(d) : load_few(from + wide, all - wide);
    const V even = hn::ConcatEven(d, high, low);
    if (count < wide) store_few(even, to, count);
    else hn::StoreU(even, d, to);
  }
#endif
  static void copy_line(T* to, const T* from, int64_t count, int64_t step) {
    if (count <= 0) return;
    if (step == 1) return copy_run(to, from, count);
    int64_t i = 0;
    if (step == 2) {
      for (V even, odd; i + lanes() < count; i += lanes()) {  // reads no element behind the last
        hn::LoadInterleaved2(D(), from + 2 * i, even, odd);
        hn::StoreU(even, D(), to + i);
      }
#if HWY_TARGET != HWY_SCALAR
      return copy_even(to + i, from + 2 * i, count - i);
#endif
    }
    for (; i < count; ++i) to[i] = from[i * step];
  }
};

}  // namespace plugrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
