// Attention in blocks of queries and keys: the scores never leave the caches.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/attention.cpp"
#include <hwy/foreach_target.h>

#include <backends/cpu/attention.hpp>
#include <backends/cpu/fold-inl.hpp>
#include <backends/cpu/rows.hpp>

HWY_BEFORE_NAMESPACE();
namespace plugrad::cpu::HWY_NAMESPACE {
namespace {

// Passes over the scores of one query. Rows of scores begin and end on whole vectors.
template <class W> struct ScoreRow {
  using D = hn::ScalableTag<W>;
  using V = hn::Vec<D>;
  static int64_t lanes() { return static_cast<int64_t>(hn::Lanes(D())); }

  // scale x + mask for the first n scores, and -inf up to the end of the last vector. mask may be null. Returns the largest.
  static W weigh(W* x, const W* mask, int64_t n, W scale) {
    const D d;
    const V factor = hn::Set(d, scale), never = hn::Set(d, -std::numeric_limits<W>::infinity());
    V largest = never;
    for (int64_t i = 0; i < n; i += lanes()) {
      V v = hn::Mul(hn::LoadU(d, x + i), factor);
      if (mask) v = hn::Add(v, hn::LoadU(d, mask + i));
      if (n - i < lanes()) v = hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(n - i)), v, never);
      largest = hn::Max(largest, v);
      hn::StoreU(v, d, x + i);
    }
    return hn::GetLane(hn::MaxOfLanes(d, largest));
  }

  // x = e^(x - shift) for n scores and the values that `weigh` added after them, and 0 for the rest before `end`. Returns
  // the sum.
  static W exponentiate(W* x, int64_t n, int64_t end, W shift) {
    const D d;
    const V by = hn::Set(d, shift);
    V sum = hn::Zero(d);
    int64_t i = 0;
    for (; i < n; i += lanes()) {
      const V v = exp_of_scores(d, hn::Sub(hn::LoadU(d, x + i), by));
      sum = hn::Add(sum, v);
      hn::StoreU(v, d, x + i);
    }
    for (; i < end; i += lanes()) hn::StoreU(hn::Zero(d), d, x + i);
    return hn::GetLane(hn::SumOfLanes(d, sum));
  }

  // to = factor from
  static void multiply(W* to, const W* from, int64_t n, W factor) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) to[i] = from[i] * factor;
  }

  // slopes = scale weights (slopes - delta) for the scores before `end`, and 0 where the weight is 0.
  static void slope(W* slopes, const W* weights, int64_t end, W delta, W scale) {
    const D d;
    const V by = hn::Set(d, delta), factor = hn::Set(d, scale);
    for (int64_t i = 0; i < end; i += lanes()) {
      const V weight = hn::LoadU(d, weights + i), apart = hn::Sub(hn::LoadU(d, slopes + i), by);
      const V slope = hn::Mul(hn::Mul(weight, factor), apart);
      hn::StoreU(hn::IfThenZeroElse(hn::Eq(weight, hn::Zero(d)), slope), d, slopes + i);  // NaN stays NaN
    }
  }

  static W dot(const W* a, const W* b, int64_t n) {
    const D d;
    V sum = hn::Zero(d);
    int64_t i = 0;
    for (; i + lanes() <= n; i += lanes()) sum = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), sum);
    W rest = 0;
    for (; i < n; ++i) rest += a[i] * b[i];
    return hn::GetLane(hn::SumOfLanes(d, sum)) + rest;
  }

  static W exponential(W x) {
    const D d;
    return hn::GetLane(exp(d, hn::Set(d, x)));
  }
  // Of n elements and the rest of the last vector.
  static void logarithm(W* x, int64_t n) {
    const D d;
    for (int64_t i = 0; i < n; i += lanes()) hn::StoreU(log(d, hn::LoadU(d, x + i)), d, x + i);
  }

  static constexpr ScoreKernels<W> kKernels{weigh, exponentiate, multiply, slope, dot, exponential, logarithm};
};

template <class T> void forward(const Call& call) {
  using W = ComputeType<T>;
  run_attention<T>(call, product_kernels<HWY_TARGET, W>(), ScoreRow<W>::kKernels);
}
template <class T> void backward(const Call& call) {
  run_attention_backward<T>(call, product_kernels<HWY_TARGET, T>(), ScoreRow<T>::kKernels);
}

template <class T> void append_forward(RowList& rows) {
  rows.push_back(with_workspace<attention_workspace<T>>(kernel<forward<T>>(PLUGRAD_OP_ATTENTION, element_dtype<T>)));
}
template <class T> void append_backward(RowList& rows) {
  rows.push_back(
      with_workspace<attention_backward_workspace<T>>(kernel<backward<T>>(PLUGRAD_OP_ATTENTION_BACKWARD, element_dtype<T>)));
}

}  // namespace
}  // namespace plugrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

namespace plugrad::cpu {
template <> void append_attention<HWY_TARGET>(RowList& rows) {
  HWY_NAMESPACE::append_forward<float>(rows);
  HWY_NAMESPACE::append_forward<double>(rows);
  HWY_NAMESPACE::append_forward<BFloat16>(rows);
  HWY_NAMESPACE::append_backward<float>(rows);
  HWY_NAMESPACE::append_backward<double>(rows);
}
}  // namespace plugrad::cpu
