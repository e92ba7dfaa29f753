// Elementary functions on vectors, f32 and f64. Polynomials are minimax fits on the reduced ranges; each function states its
// error in units in the last place. Included once for each instruction set.
#if defined(PLUGRAD_CPU_MATH_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PLUGRAD_CPU_MATH_INL
#undef PLUGRAD_CPU_MATH_INL
#else
#define PLUGRAD_CPU_MATH_INL
#endif

#include <plugrad/sdk/functions.hpp>

#include <hwy/highway.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace plugrad::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T> struct Format;
template <> struct Format<float> {
  using Bits = uint32_t;
  static constexpr int kMantissa = 23;
  static constexpr Bits kOne = 0x3f800000, kRootHalf = 0x3f3504f3, kMantissaMask = 0x7fffff, kRounderBits = 0x4b400000;
  static constexpr float kRounder = 12582912.f;  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits
  static constexpr float kLn2High = 0.693145751953125f, kLn2Low = 1.4286068203094173e-06f, kLog2E = 1.44269504f;
  static constexpr float kExpHigh = 89, kExpLow = -105, kExpPlain = 87, kLeastPower = -150;
  static constexpr float kExp[] = {0.5f, 0.16666576845993977f, 0.04166655443768594f, 0.008363202971575855f,
                                   0.0013926213466332444f};
  static constexpr float kExp2[] = {1,
                                    0.6931471805599453f,
                                    0.2402265069591007f,
                                    0.05550380953983894f,
                                    0.009618103201240645f,
                                    0.0013381350373426774f,
                                    0.00015444925372322786f};
  static constexpr float kLog[] = {0.6666666655404201f, 0.4000012221181065f, 0.28550778633191964f, 0.23331614471843498f};
  // erf(x) / x - 1 in x^2 on [0, 1], and -ln(1 - erf(x)) on [1, kErfEnd]; beyond kErfEnd erf(x) rounds to 1.
  static constexpr float kErfNear[] = {0.128379165727f,   -0.376126258238f,   0.112835851438f,  -0.0268538117393f,
                                       0.00518832732623f, -0.00080101905488f, 7.85385136572e-5f};
  static constexpr float kErfFar[] = {-0.00018846703019f, 1.12958030718f,    0.633216406285f,     0.108422088594f,
                                      -0.0252103323766f,  0.00420528187898f, -0.000441472047272f, 2.16975611369e-5f};
  static constexpr float kErfEnd = 3.95f;
  // P(-a) e^(a^2 / 2) (a + 4) of the normal distribution function P, in (a - 4) / (a + 4) for a from 0 to 13.3. Up
  // to kTailPlain e^(-a^2 / 2) is normal, from kTailEnd on it is 0.
  static constexpr float kTail[] = {0.755285137873f,    -0.607896635526f,   0.387136705055f,    -0.186522205158f,
                                    0.0604068505758f,   -0.00753252098213f, -0.00352976017834f, 0.00157770926223f,
                                    0.000211579291974f, -0.000115843636838f};
  static constexpr float kTailEnd = 14.5f, kTailPlain = 13.1f;
  // atan(t) / t - 1 in t^2, divided by t^2, on [0, tan(pi / 8)]; pi / 2 in two parts.
  static constexpr float kAtan[] = {-0.33333315506732437f, 0.19998489525808740f, -0.14243850264309121f, 0.10596011259949940f,
                                    -0.06083473962493791f};
  static constexpr float kHalfPiHigh = 1.57079637f, kHalfPiLow = -4.37113883e-8f;
  static constexpr float kSin[] = {1.5707963219455072f, -0.6459634769234457f, 0.07968020776901875f, -0.0046021176160619f};
  static constexpr float kCos[] = {-1.2337005493730024f, 0.2536694102403683f, -0.020861526786522047f,
                                   0.0009067349223943915f};
};
template <> struct Format<double> {
  using Bits = uint64_t;
  static constexpr int kMantissa = 52;
  static constexpr Bits kOne = 0x3ff0000000000000, kRootHalf = 0x3fe6a09e667f3bcd, kMantissaMask = 0xfffffffffffff,
                        kRounderBits = 0x4338000000000000;
  static constexpr double kRounder = 6755399441055744.0;
  static constexpr double kLn2High = 0.6931471803691238, kLn2Low = 1.9082149292705877e-10, kLog2E = 1.4426950408889634;
  static constexpr double kExpHigh = 710, kExpLow = -746, kExpPlain = 708, kLeastPower = -1075;
  static constexpr double kExp[] = {
      0.5000000000000001,     0.16666666666666669,   0.04166666666662399,    0.008333333333330051,   0.0013888888917281794,
      0.00019841269863105968, 2.480152119021773e-05, 2.7557268378684192e-06, 2.7620138719733994e-07, 2.5100424157005067e-08};
  static constexpr double kExp2[] = {1,
                                     0.6931471805599453,
                                     0.24022650695910075,
                                     0.05550410866482158,
                                     0.009618129107618625,
                                     0.001333355814642319,
                                     0.00015403530424870879,
                                     1.5252733820846093e-05,
                                     1.3215451562804997e-06,
                                     1.0178067229914696e-07,
                                     7.070993954026785e-09,
                                     4.4541119858399163e-10};
  static constexpr double kLog[] = {0.666666666666667,  0.3999999999989889,  0.28571428626253836, 0.22222211089379496,
                                    0.1818289243253687, 0.15331611722055008, 0.14617807153417325};
  static constexpr const auto& kErfNear = plugrad::kErfNear;
  static constexpr const auto& kErfFar = plugrad::kErfFar;
  static constexpr double kErfEnd = plugrad::kErfEnd;
  static constexpr double kTail[] = {
      // for a up to 38.7
      0.75528513041575148035,    -0.60789664197189175773,    0.38713740074221873967,    -0.18652185795969434933,
      0.060396574890706449535,   -0.0075401889655847181631,  -0.0034796923623777731568, 0.0016308184417281584583,
      0.00013334425533584468314, -0.00023109481665833731077, -1.9078737869042445556e-6, 0.000035144171266129507867,
      7.1502930765637474851e-7,  -5.9188567547979938843e-6,  -6.2517761272205325356e-7, 1.0197239060965834203e-6,
      2.6372855184504462036e-7,  -1.5415337090279744738e-7,  -7.6393784945292456985e-8, 1.4496295587963517059e-8,
      1.3908604716549314913e-8,  9.8832667969368480908e-11,  -9.5484062618311816897e-10};
  static constexpr double kTailEnd = 39, kTailPlain = 37.6;
  static constexpr double kAtan[] = {-0.33333333333333199122,  0.19999999999954084724,   -0.14285714280248695089,
                                     0.1111111078614487804,    -0.090908978366138647705, 0.076920616395994220239,
                                     -0.066631204082435382142, 0.058480090704030634802,  -0.050398461187326777226,
                                     0.038078334502666591172,  -0.017922292362840945117};
  static constexpr double kHalfPiHigh = 1.57079632679489661923, kHalfPiLow = 6.12323399573676588613e-17;
  static constexpr double kSin[] = {1.5707963267948966,    -0.6459640975062463,   0.07969262624616692,
                                    -0.004681754135314819, 0.0001604411847265753, -3.5988427165242496e-06,
                                    5.691927654951105e-08, -6.62760087835982e-10};
  static constexpr double kCos[] = {-1.2337005501361697,     0.25366950790104803,    -0.02086348076335295,
                                    0.0009192602748390887,   -2.520204236775257e-05, 4.7108743258890884e-07,
                                    -6.3863889261191576e-09, 6.51320171271602e-11};
};

// c[0] + c[1] x + ...
template <class D, class V, class T, size_t n> HWY_INLINE V polynomial(D d, V x, const T (&c)[n]) {
  V sum = hn::Set(d, c[n - 1]);
  for (size_t i = n - 1; i-- > 0;) sum = hn::MulAdd(sum, x, hn::Set(d, c[i]));
  return sum;
}

// Returns 2^k, given k + kRounder for an integer k; the result must be normal.
template <class D, class V> HWY_INLINE V power_of_two(D d, V k_and_rounder) {
  using F = Format<hn::TFromD<D>>;
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::ShiftLeft<F::kMantissa>(hn::BitCast(du, k_and_rounder));
  return hn::BitCast(d, hn::Add(bits, hn::Set(du, F::kOne)));
}

// x if it is not beyond the end, else the end. NaN stays NaN: instructions of x86 return their second operand then.
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
constexpr bool kMinIsOfSecond = true;
#else
constexpr bool kMinIsOfSecond = false;
#endif
template <class D, class V> HWY_INLINE V at_most(D d, hn::TFromD<D> end, V x) {
  const V most = hn::Set(d, end);
  if constexpr (kMinIsOfSecond) return hn::Min(most, x);
  return hn::IfThenElse(hn::Gt(x, most), most, x);
}
template <class D, class V> HWY_INLINE V at_least(D d, hn::TFromD<D> end, V x) {
  const V least = hn::Set(d, end);
  if constexpr (kMinIsOfSecond) return hn::Max(least, x);
  return hn::IfThenElse(hn::Lt(x, least), least, x);
}

// p 2^k for a p near 1 and an integer k, given with kRounder added. It is rounded once, also if it is denormal, and may be 0
// or infinite.
#if HWY_TARGET == HWY_AVX3
// Whether one instruction computes this. The instruction takes long for results in the denormal range, so vanishing results
// are masked.
template <class V> constexpr bool kHasScaling = sizeof(V) == 64;
HWY_INLINE auto scale(hn::Vec512<float> p, hn::Vec512<float> k) {
  const __mmask16 remains = _mm512_cmp_ps_mask(k.raw, _mm512_set1_ps(Format<float>::kLeastPower), _CMP_NLT_UQ);
  return decltype(p){_mm512_maskz_scalef_ps(remains, p.raw, k.raw)};
}
HWY_INLINE auto scale(hn::Vec512<double> p, hn::Vec512<double> k) {
  const __mmask8 remains = _mm512_cmp_pd_mask(k.raw, _mm512_set1_pd(Format<double>::kLeastPower), _CMP_NLT_UQ);
  return decltype(p){_mm512_maskz_scalef_pd(remains, p.raw, k.raw)};
}
#else
template <class V> constexpr bool kHasScaling = false;
#endif
template <class D, class V> HWY_INLINE V scaled(D d, V p, V k_and_rounder) {
  const V rounder = hn::Set(d, Format<hn::TFromD<D>>::kRounder), k = hn::Sub(k_and_rounder, rounder);
  if constexpr (kHasScaling<V>) return scale(p, k);
  // In two factors, since 2^k may be infinite or denormal even if the product is neither.
  const V half = hn::MulAdd(k, hn::Set(d, hn::TFromD<D>(0.5)), rounder);
  const V rest = hn::Add(hn::Sub(k, hn::Sub(half, rounder)), rounder);
  return hn::Mul(hn::Mul(p, power_of_two(d, half)), power_of_two(d, rest));
}
// The same if the product is normal.
template <class D, class V> HWY_INLINE V scaled_plainly(D d, V p, V k_and_rounder) {
  const hn::RebindToUnsigned<D> du;
  const auto exponent = hn::ShiftLeft<Format<hn::TFromD<D>>::kMantissa>(hn::BitCast(du, k_and_rounder));
  return hn::BitCast(d, hn::Add(hn::BitCast(du, p), exponent));
}

// x = k ln 2 + r with |r| <= ln 2 / 2; stores k + kRounder and returns e^r - 1.
template <class D, class V> HWY_INLINE V reduced_expm1(D d, V x, V& k_and_rounder) {
  using F = Format<hn::TFromD<D>>;
  const V rounder = hn::Set(d, F::kRounder);
  k_and_rounder = hn::MulAdd(x, hn::Set(d, F::kLog2E), rounder);
  const V k = hn::Sub(k_and_rounder, rounder);
  V r = hn::NegMulAdd(k, hn::Set(d, F::kLn2High), x);
  r = hn::NegMulAdd(k, hn::Set(d, F::kLn2Low), r);
  return hn::MulAdd(hn::Mul(r, r), polynomial(d, r, F::kExp), r);
}

// e^x if all of x lies within kExpPlain: the result is normal.
template <class D, class V> HWY_INLINE V plain_exp(D d, V x) {
  V k;
  const V p = hn::Add(reduced_expm1(d, x, k), hn::Set(d, hn::TFromD<D>(1)));
  return scaled_plainly(d, p, k);
}
// e^x for any x. Denormal results are rounded twice.
template <class D, class V> HWY_INLINE V full_exp(D d, V x) {
  using F = Format<hn::TFromD<D>>;
  x = at_most(d, F::kExpHigh, x);
  if constexpr (!kHasScaling<V>) x = at_least(d, F::kExpLow, x);
  V k;
  const V p = hn::Add(reduced_expm1(d, x, k), hn::Set(d, hn::TFromD<D>(1)));
  return scaled(d, p, k);
}
template <class D, class V> HWY_NOINLINE V any_exp(D d, V x) { return full_exp(d, x); }

// Within 2 ULP.
template <class D, class V> HWY_INLINE V exp(D d, V x) {
  if constexpr (kHasScaling<V>) return full_exp(d, x);
  if (HWY_LIKELY(hn::AllTrue(d, hn::Le(hn::Abs(x), hn::Set(d, Format<hn::TFromD<D>>::kExpPlain))))) return plain_exp(d, x);
  return any_exp(d, x);
}

// The same bits, sooner if some of x are so low that e^x is 0, such as masked scores.
template <class D, class V> HWY_INLINE V exp_of_scores(D d, V x) {
  using F = Format<hn::TFromD<D>>;
  if constexpr (kHasScaling<V>) return full_exp(d, x);
  const auto is_plain = hn::Le(hn::Abs(x), hn::Set(d, F::kExpPlain)), vanishes = hn::Lt(x, hn::Set(d, F::kExpLow));
  if (HWY_LIKELY(hn::AllTrue(d, hn::Or(is_plain, vanishes)))) return hn::IfThenElseZero(is_plain, plain_exp(d, x));
  return any_exp(d, x);
}

// Within 3 ULP, also near 0, since e^2|x| - 1 is accurate there.
template <class D, class V> HWY_INLINE V tanh(D d, V x) {
  using T = hn::TFromD<D>;
  const V size = hn::Abs(x), one = hn::Set(d, T(1));
  V k;
  const V p = reduced_expm1(d, at_most(d, static_cast<T>(sizeof(T) == 4 ? 20 : 40), hn::Add(size, size)), k);
  const V scale = power_of_two(d, k);
  const V m = hn::MulAdd(scale, p, hn::Sub(scale, one));
  return hn::CopySignToAbs(hn::Div(m, hn::Add(m, hn::Set(d, T(2)))), x);
}

// Within 3 ULP, also for tiny results, from e^-|x|.
template <class D, class V> HWY_INLINE V sigmoid(D d, V x) {
  const V one = hn::Set(d, hn::TFromD<D>(1));
  const V e = exp(d, hn::Neg(hn::Abs(x)));
  return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
}

// Within 2 ULP. NaN is not below 1, and goes through exp.
template <class D, class V> HWY_INLINE V erf(D d, V x) {
  using F = Format<hn::TFromD<D>>;
  const V size = hn::Abs(x), one = hn::Set(d, hn::TFromD<D>(1));
  const V near = hn::MulAdd(x, polynomial(d, hn::Mul(x, x), F::kErfNear), x);
  const V far = hn::Sub(one, exp(d, hn::Neg(polynomial(d, at_most(d, F::kErfEnd, size), F::kErfFar))));
  return hn::IfThenElse(hn::Lt(size, one), near, hn::CopySign(far, x));
}

// P(-size) of the normal distribution function P, for a size within [0, kTailEnd]: within 6 + 2 size^2 ULP; stores
// e^(-size^2 / 2).
template <class D, class V> HWY_INLINE V normal_tail(D d, V size, V& bell) {
  using T = hn::TFromD<D>;
  using F = Format<T>;
  const V square = hn::Mul(size, size), factor = hn::Set(d, F::kLog2E / -2), rounder = hn::Set(d, F::kRounder);
  const V k_and_rounder = hn::MulAdd(square, factor, rounder);
  const V rest = hn::MulSub(square, factor, hn::Sub(k_and_rounder, rounder));
  const V power = polynomial(d, rest, F::kExp2);
  const bool is_plain = !kHasScaling<V> && hn::AllTrue(d, hn::Le(size, hn::Set(d, F::kTailPlain)));
  bell = is_plain ? scaled_plainly(d, power, k_and_rounder) : scaled(d, power, k_and_rounder);
  const V one = hn::Set(d, T(1)), t = hn::Div(one, hn::Add(size, hn::Set(d, T(4))));
  const V s = hn::NegMulAdd(t, hn::Set(d, T(8)), one);
  return hn::Mul(hn::Mul(bell, t), polynomial(d, s, F::kTail));
}

// x / (1 + e^-v) for a v of x's sign; for a negative x the quotient of x e^v, without overflow.
template <class D, class V> HWY_INLINE V gated(D d, V x, V v) {
  const V e = exp(d, hn::Neg(hn::Abs(v)));
  const V above = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(x, e), x);
  return hn::Div(above, hn::Add(e, hn::Set(d, hn::TFromD<D>(1))));
}
// Its derivative, given the derivative of v.
template <class D, class V> HWY_INLINE V gated_slope(D d, V x, V v, V slope) {
  const V one = hn::Set(d, hn::TFromD<D>(1)), e = exp(d, hn::Neg(hn::Abs(v))), r = hn::Div(one, hn::Add(e, one));
  const V er = hn::Mul(e, r), s = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), er, r);
  return hn::MulAdd(hn::Mul(x, hn::Mul(er, r)), slope, s);
}
// 2u of the approximation of GELU.
template <class D, class V> HWY_INLINE V twice_gelu_u(D d, V x) {
  using T = hn::TFromD<D>;
  const V cubic = hn::Set(d, static_cast<T>(2 * kGeluScale * kGeluCubic));
  const V scale = hn::Set(d, static_cast<T>(2 * kGeluScale));
  return hn::Mul(x, hn::MulAdd(hn::Mul(x, x), cubic, scale));
}

// x = 2^k (1 + f) with 1 + f in [sqrt 1/2, sqrt 2), for a positive normal x; stores k and returns f.
template <class D, class V> HWY_INLINE V split_exponent(D d, V x, V& k) {
  using T = hn::TFromD<D>;
  using F = Format<T>;
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::Add(hn::BitCast(du, x), hn::Set(du, typename F::Bits(F::kOne - F::kRootHalf)));
  const auto exponent = hn::Add(hn::ShiftRight<F::kMantissa>(bits), hn::Set(du, F::kRounderBits));
  constexpr T kBias = static_cast<T>(F::kOne >> F::kMantissa);
  k = hn::Sub(hn::BitCast(d, exponent), hn::Set(d, F::kRounder + kBias));
  const auto mantissa = hn::And(bits, hn::Set(du, F::kMantissaMask));
  return hn::Sub(hn::BitCast(d, hn::Add(mantissa, hn::Set(du, F::kRootHalf))), hn::Set(d, T(1)));
}

// Returns the mask of positive, normal and finite lanes.
template <class D, class V> HWY_INLINE auto is_plain(D d, V x) {
  using Limits = std::numeric_limits<hn::TFromD<D>>;
  return hn::And(hn::Ge(x, hn::Set(d, Limits::min())), hn::Le(x, hn::Set(d, Limits::max())));
}

// k ln 2 + ln(1 + f)
template <class D, class V> HWY_INLINE V log_of_parts(D d, V f, V k) {
  using T = hn::TFromD<D>;
  using F = Format<T>;
  const V s = hn::Div(f, hn::Add(f, hn::Set(d, T(2)))), z = hn::Mul(s, s);
  const V r = hn::Mul(z, polynomial(d, z, F::kLog)), half = hn::Mul(hn::Mul(f, f), hn::Set(d, T(0.5)));
  const V low = hn::MulAdd(k, hn::Set(d, F::kLn2Low), hn::Mul(s, hn::Add(half, r)));
  return hn::MulAdd(k, hn::Set(d, F::kLn2High), hn::Sub(f, hn::Sub(half, low)));
}

template <class D, class V> HWY_NOINLINE V any_log(D d, V x) {
  using T = hn::TFromD<D>;
  using F = Format<T>;
  const V infinity = hn::Set(d, std::numeric_limits<T>::infinity()), zero = hn::Zero(d);
  const auto is_tiny = hn::Lt(x, hn::Set(d, std::numeric_limits<T>::min()));
  const V scale = hn::Set(d, static_cast<T>(typename F::Bits(1) << F::kMantissa));
  V k;
  const V f = split_exponent(d, hn::IfThenElse(is_tiny, hn::Mul(x, scale), x), k);
  k = hn::IfThenElse(is_tiny, hn::Sub(k, hn::Set(d, static_cast<T>(F::kMantissa))), k);
  V y = log_of_parts(d, f, k);
  y = hn::IfThenElse(hn::Lt(x, infinity), y, x);  // infinity, NaN
  y = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(infinity), y);
  return hn::IfThenElse(hn::Lt(x, zero), hn::Set(d, std::numeric_limits<T>::quiet_NaN()), y);
}

// Within 2 ULP.
template <class D, class V> HWY_INLINE V log(D d, V x) {
  if (HWY_UNLIKELY(!hn::AllTrue(d, is_plain(d, x)))) return any_log(d, x);
  V k;
  const V f = split_exponent(d, x, k);
  return log_of_parts(d, f, k);
}

// cos and sin of pi / 2 (k + f) for an integer k and |f| <= 1/2, given k + kRounder.
template <class D, class V> HWY_INLINE void cos_sin_quarters(D d, V rounded, V f, V& cosine, V& sine) {
  using T = hn::TFromD<D>;
  using F = Format<T>;
  const hn::RebindToUnsigned<D> du;
  const V t = hn::Mul(f, f);
  const V s = hn::Mul(f, polynomial(d, t, F::kSin));
  const V c = hn::MulAdd(t, polynomial(d, t, F::kCos), hn::Set(d, T(1)));
  const auto quadrant = hn::BitCast(du, rounded);
  const auto one = hn::Set(du, typename F::Bits(1)), two = hn::Set(du, typename F::Bits(2));
  const auto odd = hn::MaskFromVec(hn::BitCast(d, hn::Sub(hn::Zero(du), hn::And(quadrant, one))));
  constexpr int kToSign = static_cast<int>(sizeof(T)) * 8 - 2;
  const auto sine_sign = hn::BitCast(d, hn::ShiftLeft<kToSign>(hn::And(quadrant, two)));
  const auto cosine_sign = hn::BitCast(d, hn::ShiftLeft<kToSign>(hn::And(hn::Add(quadrant, one), two)));
  sine = hn::Xor(hn::IfThenElse(odd, c, s), sine_sign);
  cosine = hn::Xor(hn::IfThenElse(odd, s, c), cosine_sign);
}

// cos and sin of 2 pi v for v in [0, 1], within 4 eps.
template <class D, class V> HWY_INLINE void cos_sin_turns(D d, V v, V& cosine, V& sine) {
  const V rounder = hn::Set(d, Format<hn::TFromD<D>>::kRounder);
  const V four = hn::Mul(v, hn::Set(d, hn::TFromD<D>(4))), rounded = hn::Add(four, rounder);
  cos_sin_quarters(d, rounded, hn::Sub(four, hn::Sub(rounded, rounder)), cosine, sine);
}

// x = k pi / 2 + r, in double. pi / 2 is the sum of three parts; the products of the first two (33 bits each) with k are
// exact (after fdlibm's e_rem_pio2.c).
struct Quarters {
  static constexpr double kEnd = 10000, kPerRadian = 0.63661977236758134308, kFirst = 1.57079632673412561417,
                          kSecond = 6.07710050630396597660e-11, kThird = 2.02226624879595063154e-21;
};
// Returns r in units of pi / 2, for |x| below kEnd; stores k + kRounder.
template <class D, class V> HWY_INLINE V reduced_quarters(D d, V x, V& rounded) {
  using Q = Quarters;
  const V rounder = hn::Set(d, Format<double>::kRounder), per_radian = hn::Set(d, Q::kPerRadian);
  rounded = hn::MulAdd(x, per_radian, rounder);
  const V k = hn::Sub(rounded, rounder), first = hn::Sub(x, hn::Mul(k, hn::Set(d, Q::kFirst)));
  const V second = hn::Mul(k, hn::Set(d, Q::kSecond)), r = hn::Sub(first, second);
  const V rest = hn::Sub(hn::Sub(hn::Sub(first, r), second), hn::Mul(k, hn::Set(d, Q::kThird)));
  return hn::Mul(hn::IfThenElse(hn::Eq(k, hn::Zero(d)), x, hn::Add(r, rest)), per_radian);  // -0 stays -0
}
// y, with function(x) in the lanes where |x| is kEnd or more: the result for an element depends on this element alone.
template <class D, class V> HWY_NOINLINE V with_far_lanes(D d, V y, V x, double (*function)(double)) {
  HWY_ALIGN double lanes[HWY_MAX_BYTES / sizeof(double)];
  hn::Store(x, d, lanes);
  for (size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = std::fabs(lanes[i]) < Quarters::kEnd ? 0 : function(lanes[i]);
  return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, Quarters::kEnd)), y, hn::Load(d, lanes));
}
template <class D, class V> HWY_INLINE bool is_near_zero(D d, V x) {
  return hn::AllTrue(d, hn::Lt(hn::Abs(x), hn::Set(d, Quarters::kEnd)));
}
template <class D, class V> HWY_INLINE V sin_of_doubles(D d, V x) {
  V rounded, cosine, sine;
  const V f = reduced_quarters(d, x, rounded);
  cos_sin_quarters(d, rounded, f, cosine, sine);
  if (HWY_LIKELY(is_near_zero(d, x))) return sine;
  return with_far_lanes(d, sine, x, [](double each) { return std::sin(each); });
}
template <class D, class V> HWY_INLINE V cos_of_doubles(D d, V x) {
  V rounded, cosine, sine;
  const V f = reduced_quarters(d, x, rounded);
  cos_sin_quarters(d, rounded, f, cosine, sine);
  if (HWY_LIKELY(is_near_zero(d, x))) return cosine;
  return with_far_lanes(d, cosine, x, [](double each) { return std::cos(each); });
}

// Converts to f32. Highway's scalar version saturates at the largest finite number, where its vector versions give infinity.
template <class D, class V> HWY_INLINE auto narrow(D df, V v) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(df, static_cast<float>(hn::GetLane(v)));
#else
  return hn::DemoteTo(df, v);
#endif
}
// A function of doubles on a vector of f32 or f64.
template <class D, class V, class Function> HWY_INLINE V in_double(D d, V x, Function function) {
  if constexpr (sizeof(hn::TFromD<D>) == 8) {
    return function(d, x);
  } else {
#if HWY_TARGET == HWY_SCALAR
    const hn::Rebind<double, D> wide;
    return narrow(d, function(wide, hn::PromoteTo(wide, x)));
#else
    const hn::Half<D> half;
    const hn::Rebind<double, decltype(half)> wide;
    const auto low = narrow(half, function(wide, hn::PromoteTo(wide, hn::LowerHalf(half, x))));
    const auto high = narrow(half, function(wide, hn::PromoteTo(wide, hn::UpperHalf(half, x))));
    return hn::Combine(d, high, low);
#endif
  }
}
// Within 3 ULP.
template <class D, class V> HWY_INLINE V sin(D d, V x) {
  return in_double(d, x, [](auto wide, auto v) HWY_ATTR { return sin_of_doubles(wide, v); });
}
template <class D, class V> HWY_INLINE V cos(D d, V x) {
  return in_double(d, x, [](auto wide, auto v) HWY_ATTR { return cos_of_doubles(wide, v); });
}

// Within 3 ULP. atan(x) = atan(c) + atan((x - c) / (1 + c x)) with c of 0, 1, or infinity.
template <class D, class V> HWY_INLINE V atan(D d, V x) {
  using T = hn::TFromD<D>;
  using F = Format<T>;
  const V size = hn::Abs(x), one = hn::Set(d, T(1)), zero = hn::Zero(d);
  const auto beyond = hn::Gt(size, hn::Set(d, T(2.414213562373095)));
  const auto middle = hn::Gt(size, hn::Set(d, T(0.414213562373095)));
  const V above = hn::IfThenElse(beyond, hn::Neg(one), hn::IfThenElse(middle, hn::Sub(size, one), size));
  const V below = hn::IfThenElse(beyond, size, hn::IfThenElse(middle, hn::Add(size, one), one));
  const V t = hn::Div(above, below), z = hn::Mul(t, t), quarters = hn::Set(d, T(0.5));
  const V part = hn::IfThenElse(beyond, one, hn::IfThenElse(middle, quarters, zero));
  const V near = hn::MulAdd(t, hn::Mul(z, polynomial(d, z, F::kAtan)), t);
  const V low = hn::MulAdd(part, hn::Set(d, F::kHalfPiLow), near);
  return hn::CopySign(hn::MulAdd(part, hn::Set(d, F::kHalfPiHigh), low), x);
}

// Loads the first n lanes from p and fills the remaining lanes with `rest`; store_part stores n lanes. n is below Lanes(d).
template <class D, class T> HWY_INLINE hn::Vec<D> load_part(D d, const T* p, size_t n, T rest) {
  HWY_ALIGN T lanes[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(hn::Set(d, rest), d, lanes);
  for (size_t i = 0; i < n; ++i) lanes[i] = p[i];
  return hn::Load(d, lanes);
}
// The same for the last n of `row` elements: loading a whole vector with the same end is cheaper than assembling a vector.
template <class D, class T> HWY_INLINE hn::Vec<D> load_rest(D d, const T* p, int64_t n, int64_t row, T rest) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  if (row < lanes) return load_part(d, p, static_cast<size_t>(n), rest);
  return hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(lanes - n)), hn::Set(d, rest), hn::LoadU(d, p + n - lanes));
}
template <class D, class V, class T> HWY_INLINE void store_part(D d, V v, T* p, size_t n) {
  HWY_ALIGN T lanes[HWY_MAX_BYTES / sizeof(T)] = {};
  hn::Store(v, d, lanes);
  for (size_t i = 0; i < n; ++i) p[i] = lanes[i];
}

}  // namespace plugrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
