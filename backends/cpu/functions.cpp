// The inexact elementwise functions: exp, log, tanh, sigmoid, erf, sin, cos, atan, pow, and the activations made of them,
// with their gradients.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/functions.cpp"
#include <hwy/foreach_target.h>

#include <backends/cpu/elementwise-inl.hpp>
#include <backends/cpu/math-inl.hpp>
#include <backends/cpu/streaming.hpp>

#include <hwy/cache_control.h>

#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace plugrad::cpu::HWY_NAMESPACE {
namespace {

// The vectors of an op: Vectors<opcode>::of(d, x).
template <uint32_t opcode> struct Vectors;
template <> struct Vectors<PLUGRAD_OP_EXP> {
  template <class D, class V> static HWY_INLINE V of(D d, V x) { return exp(d, x); }
};
template <> struct Vectors<PLUGRAD_OP_LOG> {
  template <class D, class V> static HWY_INLINE V of(D d, V x) { return log(d, x); }
};
template <> struct Vectors<PLUGRAD_OP_TANH> {
  template <class D, class V> static HWY_INLINE V of(D d, V x) { return tanh(d, x); }
};
template <> struct Vectors<PLUGRAD_OP_SIGMOID> {
  template <class D, class V> static HWY_INLINE V of(D d, V x) { return sigmoid(d, x); }
};
template <> struct Vectors<PLUGRAD_OP_ERF> {
  template <class D, class V> static HWY_INLINE V of(D d, V x) { return erf(d, x); }
};
template <> struct Vectors<PLUGRAD_OP_SIN> {
  template <class D, class V> static HWY_INLINE V of(D d, V x) { return sin(d, x); }
};
template <> struct Vectors<PLUGRAD_OP_COS> {
  template <class D, class V> static HWY_INLINE V of(D d, V x) { return cos(d, x); }
};
template <> struct Vectors<PLUGRAD_OP_ATAN> {
  template <class D, class V> static HWY_INLINE V of(D d, V x) { return atan(d, x); }
};
template <> struct Vectors<PLUGRAD_OP_GELU> {
  // x P(x); above 0 it equals x - x P(-x).
  template <class D, class V> static HWY_INLINE V of(D d, V x) {
    V bell;
    const V size = at_most(d, Format<hn::TFromD<D>>::kTailEnd, hn::Abs(x)), tail = normal_tail(d, size, bell);
    return hn::IfNegativeThenElse(x, hn::Mul(x, tail), hn::NegMulAdd(size, tail, x));
  }
};
template <> struct Vectors<PLUGRAD_OP_GELU_TANH> {
  template <class D, class V> static HWY_INLINE V of(D d, V x) { return gated(d, x, twice_gelu_u(d, x)); }
};
template <> struct Vectors<PLUGRAD_OP_SILU> {
  template <class D, class V> static HWY_INLINE V of(D d, V x) { return gated(d, x, x); }
};
template <> struct Vectors<PLUGRAD_OP_GELU_BACKWARD> {
  template <class D, class V> static HWY_INLINE V of(D d, V grad, V x) {
    using T = hn::TFromD<D>;
    V bell;
    const V tail = normal_tail(d, at_most(d, Format<T>::kTailEnd, hn::Abs(x)), bell);
    const V part = hn::IfNegativeThenElse(x, tail, hn::Sub(hn::Set(d, T(1)), tail));  // P(x)
    return hn::Mul(grad, hn::MulAdd(hn::Mul(x, bell), hn::Set(d, static_cast<T>(kRootTwoPi)), part));
  }
};
template <> struct Vectors<PLUGRAD_OP_GELU_TANH_BACKWARD> {
  // A square beyond kGeluEnd may overflow, where e is 0.
  template <class D, class V> static HWY_INLINE V of(D d, V grad, V x) {
    using T = hn::TFromD<D>;
    const V bounded = hn::CopySign(at_most(d, static_cast<T>(kGeluEnd), hn::Abs(x)), x);
    const V cubic = hn::Set(d, static_cast<T>(6 * kGeluScale * kGeluCubic));
    const V linear = hn::Set(d, static_cast<T>(2 * kGeluScale));
    const V slope = hn::MulAdd(hn::Mul(bounded, bounded), cubic, linear);
    return hn::Mul(grad, gated_slope(d, x, twice_gelu_u(d, bounded), slope));
  }
};
template <> struct Vectors<PLUGRAD_OP_SILU_BACKWARD> {
  template <class D, class V> static HWY_INLINE V of(D d, V grad, V x) {
    return hn::Mul(grad, gated_slope(d, x, x, hn::Set(d, hn::TFromD<D>(1))));
  }
};

// The arguments of a row whose stores bypass the caches.
constexpr bool kStreamed = true;
const void* arguments_for(const plugrad_view& out) { return is_streamed(out) ? &kStreamed : nullptr; }

// Stores at(i), a function of x, for all whole vectors before the last vector. The last vector overlaps its predecessor.
// While a function is computed, few loads are under way, so the loop reads ahead if the output is larger than the caches.
template <class D, class T, class At>
HWY_INLINE void store_all_but_last(D d, T* out, const T* x, int64_t n, const void* arguments, At at) {
  constexpr int64_t kAhead = kReadAhead / sizeof(T);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const bool streamed = arguments && reinterpret_cast<uintptr_t>(out) % (hn::Lanes(d) * sizeof(T)) == 0;
  if (streamed)
    for (int64_t i = 0; i + lanes < n; i += lanes) {
      hwy::Prefetch(x + i + kAhead);
      hn::Stream(at(i), d, out + i);
    }
  else
    for (int64_t i = 0; i + lanes < n; i += lanes) hn::StoreU(at(i), d, out + i);
}

template <class F, class T> struct VectorUnary {
  // The last vector is computed first, since the output may be the input.
  static void dense(char* const* p, int64_t n, const void* arguments) {
    const hn::ScalableTag<T> d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    T* out = reinterpret_cast<T*>(p[0]);
    const T* x = reinterpret_cast<const T*>(p[1]);
    if (n < lanes)
      return store_part(d, F::of(d, load_part(d, x, static_cast<size_t>(n), T(0))), out, static_cast<size_t>(n));
    const auto last = F::of(d, hn::LoadU(d, x + n - lanes));
    store_all_but_last(d, out, x, n, arguments, [&](int64_t i) HWY_ATTR { return F::of(d, hn::LoadU(d, x + i)); });
    hn::StoreU(last, d, out + n - lanes);
  }
  static constexpr Elementwise kKind{1, 1, 0, 8, {sizeof(T), sizeof(T)}, {dense}};
  static void general(const Call& call) { run_elementwise(kKind, call, arguments_for(call.out())); }

  static plugrad_status run(const plugrad_kernel* self, plugrad_stream* stream, const plugrad_op* op) noexcept {
    const plugrad_view &out = *op->views[0], &x = *op->views[1];
    if (out.count == 1) [[likely]] {
      const hn::ScalableTag<T> d;
      *data<T>(out) = hn::GetLane(F::of(d, hn::Set(d, element<T>(x))));
      return PLUGRAD_OK;
    }
    if (out.count <= kGrain / kKind.weight && is_dense(out) && is_dense(x)) {
      char* const p[] = {data<char>(out), data<char>(x)};
      return dense(p, out.count, nullptr), PLUGRAD_OK;
    }
    return run_kernel<general>(self, stream, op);
  }
};

// A gradient: a function of grad, possibly one element for the row, and of x.
template <class F, class T> struct VectorBinary {
  using D = hn::ScalableTag<T>;
  template <bool single> static HWY_INLINE hn::Vec<D> at(const T* p, int64_t i) {
    return single ? hn::Set(D(), *p) : hn::LoadU(D(), p + i);
  }
  // The last vector is computed first, since the output may be an input.
  template <bool single> static void row(char* const* p, int64_t n, const void* arguments) {
    const D d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    T* out = reinterpret_cast<T*>(p[0]);
    const T *grad = reinterpret_cast<const T*>(p[1]), *x = reinterpret_cast<const T*>(p[2]);
    const size_t few = static_cast<size_t>(n);
    if (n < lanes) {
      const auto some = single ? hn::Set(d, *grad) : load_part(d, grad, few, T(0));
      return store_part(d, F::of(d, some, load_part(d, x, few, T(0))), out, few);
    }
    const auto last = F::of(d, at<single>(grad, n - lanes), hn::LoadU(d, x + n - lanes));
    store_all_but_last(d, out, x, n, arguments,
                       [&](int64_t i) HWY_ATTR { return F::of(d, at<single>(grad, i), hn::LoadU(d, x + i)); });
    hn::StoreU(last, d, out + n - lanes);
  }
  static constexpr Elementwise kKind{1, 2, 0, 16, {sizeof(T), sizeof(T), sizeof(T)}, {row<false>, row<true>}};
  static void general(const Call& call) { run_elementwise(kKind, call, arguments_for(call.out())); }
  static constexpr RunFunction run = run_kernel<general>;
};

// |x|^y = 2^(y log2 |x|), computed in double for f32 operands: within 1 ULP of f32.
struct PowConstants {
  static constexpr double kLog2[] = {2.885390081790048, 0.9617966733682309, 0.5770835830070087, 0.41167268734376855,
                                     0.3407329932424559};
  static constexpr double kExp2[] = {1.0,
                                     0.6931472067342503,
                                     0.2402265092256076,
                                     0.05550327159647605,
                                     0.00961805662050108,
                                     0.0013400454984126323,
                                     0.00015461467905285986};
};

// Denormals of f32 are normal in double.
template <class D, class V> HWY_INLINE V log2_of_plain(D d, V x) {
  V k;
  const V f = split_exponent(d, x, k);
  const V s = hn::Div(f, hn::Add(f, hn::Set(d, 2.0)));
  return hn::MulAdd(s, polynomial(d, hn::Mul(s, s), PowConstants::kLog2), k);
}
template <class D, class V> HWY_INLINE V log2_of_size(D d, V size) {
  const V infinity = hn::Set(d, HUGE_VAL), y = log2_of_plain(d, size);
  return hn::IfThenElse(hn::Eq(size, hn::Zero(d)), hn::Neg(infinity), hn::IfThenElse(hn::Lt(size, infinity), y, size));
}

// A result beyond the range of f32 may be any number beyond it.
template <class D, class V> HWY_INLINE V exp2_of_f32(D d, V x) {
  const V rounder = hn::Set(d, Format<double>::kRounder);
  x = at_least(d, -200.0, at_most(d, 200.0, x));
  const V rounded = hn::Add(x, rounder), r = hn::Sub(x, hn::Sub(rounded, rounder));
  return hn::Mul(polynomial(d, r, PowConstants::kExp2), power_of_two(d, rounded));
}

// C's pow with its special cases.
template <class D, class V> HWY_NOINLINE V any_pow(D d, V x, V y) {
  const V infinity = hn::Set(d, HUGE_VAL), one = hn::Set(d, 1.0), zero = hn::Zero(d), half = hn::Mul(y, hn::Set(d, 0.5));
  const V size = hn::Abs(x);
  V result = exp2_of_f32(d, hn::Mul(y, log2_of_size(d, size)));
  const auto integer = hn::Eq(hn::Round(y), y);
  const auto odd = hn::And(integer, hn::Ne(hn::Round(half), half));
  const auto undefined = hn::And(hn::And(hn::Lt(x, zero), hn::Lt(size, infinity)), hn::Not(integer));
  result = hn::IfThenElse(undefined, hn::Set(d, std::numeric_limits<double>::quiet_NaN()), result);
  const auto is_one = hn::Or(hn::Eq(x, one), hn::And(hn::Eq(size, one), hn::Eq(hn::Abs(y), infinity)));
  result = hn::IfThenElse(hn::Or(is_one, hn::Eq(y, zero)), one, result);
  return hn::IfThenElse(odd, hn::CopySign(result, x), result);
}

template <class D, class V> HWY_INLINE V pow_of_f32(D d, V x, V y) {
  const auto plain = hn::And(is_plain(d, x), hn::Lt(hn::Abs(y), hn::Set(d, HUGE_VAL)));
  if (HWY_UNLIKELY(!hn::AllTrue(d, plain))) return any_pow(d, x, y);
  return exp2_of_f32(d, hn::Mul(y, log2_of_plain(d, x)));
}

// Handles exponents with one or two operations. If an intermediate value overflows or underflows, so does the result.
template <class T> bool quick_power(T* out, const T* x, int64_t n, T y) {
  const auto loop = [&](auto f) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) out[i] = f(x[i]);
    return true;
  };
  if (y == 2) return loop([](T v) HWY_ATTR { return v * v; });
  if (y == 1) return loop([](T v) HWY_ATTR { return v; });
  if (y == 3) return loop([](T v) HWY_ATTR { return v * v * v; });
  if (y == -1) return loop([](T v) HWY_ATTR { return 1 / v; });
  if (y == T(0.5))
    return loop([](T v)
                    HWY_ATTR { return v == -static_cast<T>(INFINITY) ? static_cast<T>(INFINITY) : std::sqrt(v + T(0)); });
  return false;
}

// x^y in pairs of f32 (value, rest), for positive normal x and normal results: within 5 ULP, at less than half the cost.
// Returns whether this holds for all lanes. The rests of the products need a fused multiply-add.
template <class D, class V> HWY_INLINE bool plain_pow(D d, V x, V y, V& result) {
  constexpr float kLog2[] = {0.9617966923011453f, 0.577079779499317f, 0.41190066747624626f, 0.3366040449446179f};
  constexpr float kExp2[] = {0.693147188116349f,    0.24022650761348438f,   0.05550356682386405f,
                             0.009618082183394121f, 0.0013391093247266345f, 0.0001545336197353356f};
  const V scale = hn::Set(d, 2.885390043258667f), scale_rest = hn::Set(d, 3.851925982253235e-08f);  // 2 / ln 2
  const V one = hn::Set(d, 1.f), rounder = hn::Set(d, Format<float>::kRounder);
  V k;
  const V f = split_exponent(d, x, k), sum = hn::Add(f, hn::Set(d, 2.f));
  const V sum_rest = hn::Sub(f, hn::Sub(sum, hn::Set(d, 2.f)));
  const V s = hn::Div(f, sum), missing = hn::NegMulAdd(s, sum_rest, hn::NegMulAdd(s, sum, f));
  const V s_rest = hn::Mul(missing, hn::ApproximateReciprocal(sum)), z = hn::Mul(s, s);
  const V linear = hn::Mul(s, scale), curve = hn::Mul(hn::Mul(s, z), polynomial(d, z, kLog2));
  const V linear_rest = hn::Add(hn::MulSub(s, scale, linear), hn::MulAdd(s, scale_rest, hn::Mul(s_rest, scale)));
  const V part = hn::Add(linear, curve), part_rest = hn::Add(hn::Sub(curve, hn::Sub(part, linear)), linear_rest);
  const V log2 = hn::Add(k, part), log2_rest = hn::Add(hn::Sub(part, hn::Sub(log2, k)), part_rest);
  const V e = hn::Mul(y, log2), e_rest = hn::MulAdd(y, log2_rest, hn::MulSub(y, log2, e));
  const V rounded = hn::Add(e, rounder), r = hn::Add(hn::Sub(e, hn::Sub(rounded, rounder)), e_rest);
  const hn::RebindToUnsigned<D> du;
  const auto exponent = hn::ShiftLeft<Format<float>::kMantissa>(hn::BitCast(du, rounded));
  const V p = hn::MulAdd(r, polynomial(d, r, kExp2), one);
  result = hn::BitCast(d, hn::Add(hn::BitCast(du, p), exponent));
  return hn::AllTrue(d, hn::And(is_plain(d, x), hn::Lt(hn::Abs(e), hn::Set(d, 125.f))));
}

template <class T> struct Pow;

template <> struct Pow<float> {
  static HWY_INLINE hn::Vec<hn::ScalableTag<float>> some(bool single, const float* p) {
    const hn::ScalableTag<float> d;
    return single ? hn::Set(d, *p) : hn::LoadU(d, p);
  }

  template <bool a_single, bool b_single> static void row(char* const* p, int64_t n, const void*) {
    float* out = reinterpret_cast<float*>(p[0]);
    const float *a = reinterpret_cast<const float*>(p[1]), *b = reinterpret_cast<const float*>(p[2]);
    if (b_single && quick_power(out, a, n, *b)) return;
    int64_t i = 0;
#if HWY_NATIVE_FMA
    const hn::ScalableTag<float> d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    for (; i + lanes <= n; i += lanes) {
      auto result = hn::Zero(d);
      const auto x = some(a_single, a_single ? a : a + i), y = some(b_single, b_single ? b : b + i);
      if (HWY_LIKELY(plain_pow(d, x, y, result))) hn::StoreU(result, d, out + i);
      else wide_row<a_single, b_single>(out + i, a_single ? a : a + i, b_single ? b : b + i, lanes);
    }
#endif
    if (i < n) wide_row<a_single, b_single>(out + i, a_single ? a : a + i, b_single ? b : b + i, n - i);
  }

  // Any operands, computed in double.
  template <bool a_single, bool b_single> static void wide_row(float* out, const float* a, const float* b, int64_t n) {
    const hn::ScalableTag<double> d;
    const hn::Rebind<float, decltype(d)> df;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    const auto wide = [d, df](bool single, const float* v, int64_t i) HWY_ATTR {
      return single ? hn::Set(d, static_cast<double>(*v)) : hn::PromoteTo(d, hn::LoadU(df, v + i));
    };
    const auto at = [&](int64_t i)
                        HWY_ATTR { return narrow(df, pow_of_f32(d, wide(a_single, a, i), wide(b_single, b, i))); };
    if (n < lanes) {
      const auto part = [d, df, n](bool single, const float* v) HWY_ATTR {
        return single ? hn::Set(d, static_cast<double>(*v))
                      : hn::PromoteTo(d, load_part(df, v, static_cast<size_t>(n), 1.f));
      };
      return store_part(df, narrow(df, pow_of_f32(d, part(a_single, a), part(b_single, b))), out, static_cast<size_t>(n));
    }
    const auto last = at(n - lanes);  // computed first, since the output may be an operand
    for (int64_t i = 0; i + lanes < n; i += lanes) hn::StoreU(at(i), df, out + i);
    hn::StoreU(last, df, out + n - lanes);
  }
  static float single(float x, float y) {
    const hn::ScalableTag<double> d;
    if (y == 2) return x * x;
    return static_cast<float>(
        hn::GetLane(pow_of_f32(d, hn::Set(d, static_cast<double>(x)), hn::Set(d, static_cast<double>(y)))));
  }
};

template <> struct Pow<double> {  // as exact as libm: f64 is used for checking
  template <bool a_single, bool b_single> static void row(char* const* p, int64_t n, const void*) {
    double* out = reinterpret_cast<double*>(p[0]);
    const double *a = reinterpret_cast<const double*>(p[1]), *b = reinterpret_cast<const double*>(p[2]);
    const double a0 = *a, b0 = *b;
    if (b_single && quick_power(out, a, n, b0)) return;
    for (int64_t i = 0; i < n; ++i) out[i] = std::pow(a_single ? a0 : a[i], b_single ? b0 : b[i]);
  }
  static double single(double x, double y) { return y == 2 ? x * x : std::pow(x, y); }
};

template <class T> struct Power : Pow<T> {
  static constexpr Elementwise kKind{
      1,
      2,
      0,
      16,
      {sizeof(T), sizeof(T), sizeof(T)},
      {Pow<T>::template row<false, false>, Pow<T>::template row<true, false>, Pow<T>::template row<false, true>}};
  static void general(const Call& call) { run_elementwise(kKind, call); }

  static plugrad_status run(const plugrad_kernel* self, plugrad_stream* stream, const plugrad_op* op) noexcept {
    const plugrad_view &out = *op->views[0], &a = *op->views[1], &b = *op->views[2];
    if (out.count == 1) [[likely]] {
      *data<T>(out) = Pow<T>::single(element<T>(a), element<T>(b));
      return PLUGRAD_OK;
    }
    return run_kernel<general>(self, stream, op);
  }
};

// Computes a row of a narrow type: widens it piece by piece, computes in the wider type, and rounds. Bit i of singles: input
// i is one element for the whole row.
template <class T, RowFunction wide, int inputs, unsigned singles = 0>
void narrow_row(char* const* p, int64_t n, const void* arguments) {
  constexpr int64_t kPiece = 512;
  ComputeType<T> pieces[inputs + 1][kPiece];
  char* q[inputs + 1];
  for (int k = 0; k <= inputs; ++k) q[k] = reinterpret_cast<char*>(pieces[k]);
  for (int64_t i = 0; i < n; i += kPiece) {
    const int64_t some = std::min(kPiece, n - i);
    for (int k = 1; k <= inputs; ++k) {
      const bool single = singles >> (k - 1) & 1;
      const T* x = reinterpret_cast<const T*>(p[k]) + (single ? 0 : i);
      for (int64_t j = 0; j < (single ? 1 : some); ++j) pieces[k][j] = widened(x[j]);
    }
    wide(q, some, arguments);
    T* out = reinterpret_cast<T*>(p[0]) + i;
    for (int64_t j = 0; j < some; ++j) out[j] = static_cast<T>(pieces[0][j]);
  }
}

template <const Elementwise& kind> struct Rowwise {
  static constexpr const Elementwise& kKind = kind;
  static void general(const Call& call) { run_elementwise(kind, call); }
  static constexpr RunFunction run = run_kernel<general>;
};
template <class V, class T>
inline constexpr Elementwise kNarrowUnary{
    1, 1, 0, 8, {sizeof(T), sizeof(T)}, {narrow_row<T, VectorUnary<V, ComputeType<T>>::dense, 1>}};
template <class P, class T>
inline constexpr Elementwise kNarrowPower{
    1,
    2,
    0,
    16,
    {sizeof(T), sizeof(T), sizeof(T)},
    {narrow_row<T, P::template row<false, false>, 2>, narrow_row<T, P::template row<true, false>, 2, 1>,
     narrow_row<T, P::template row<false, true>, 2, 2>}};

template <class V, class T>
inline constexpr Elementwise kNarrowBinary{1,
                                           2,
                                           0,
                                           16,
                                           {sizeof(T), sizeof(T), sizeof(T)},
                                           {narrow_row<T, VectorBinary<V, ComputeType<T>>::template row<false>, 2>,
                                            narrow_row<T, VectorBinary<V, ComputeType<T>>::template row<true>, 2, 1>}};

template <class F, class T, bool is_narrow, int inputs> struct RunOf;
template <uint32_t opcode, class T> struct RunOf<OpFunction<opcode>, T, false, 1> : VectorUnary<Vectors<opcode>, T> {};
template <uint32_t opcode, class T> struct RunOf<OpFunction<opcode>, T, false, 2> : VectorBinary<Vectors<opcode>, T> {};
template <class T> struct RunOf<OpFunction<PLUGRAD_OP_POW>, T, false, 2> : Power<T> {};
template <uint32_t opcode, class T>
struct RunOf<OpFunction<opcode>, T, true, 1> : Rowwise<kNarrowUnary<Vectors<opcode>, T>> {};
template <uint32_t opcode, class T>
struct RunOf<OpFunction<opcode>, T, true, 2> : Rowwise<kNarrowBinary<Vectors<opcode>, T>> {};
template <class T> struct RunOf<OpFunction<PLUGRAD_OP_POW>, T, true, 2> : Rowwise<kNarrowPower<Pow<ComputeType<T>>, T>> {};

struct Maker {
  static constexpr bool makes(const OpInfo& op) { return is_approximated(op); }

  template <class F, class Out, class... In> static constexpr KernelRow row(const OpInfo& op, uint8_t dtype) {
    using Row = RunOf<F, Out, !std::is_same_v<Out, ComputeType<Out>>, sizeof...(In)>;
    return of_kind(kernel_row(op.opcode, dtype, Row::run), Row::kKind);
  }
};
constexpr auto kRows = elementwise_rows<Maker>(kAny);

}  // namespace
}  // namespace plugrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

namespace plugrad::cpu {
template <> void append_functions<HWY_TARGET>(RowList& rows) { append(rows, HWY_NAMESPACE::kRows); }
}  // namespace plugrad::cpu
