// Modified Bessel functions. Their Chebyshev series are fits of e^-x I(x), of order 1 divided by x, on [0, 8], and of
// sqrt(x) e^-x I(x) as a function of 1 / x beyond.
#include <core/ops/wide.hpp>
#include <plugrad/ops/logic.hpp>
#include <plugrad/ops/special.hpp>

#include <span>

namespace plugrad {
namespace {
constexpr double kNear0[] = {
    0.338397637204738042,     -0.304682672343198399,    0.171620901522208775,    -0.0949010970480476444,
    0.0493052842396707085,    -0.0237374148058994688,   0.0105464603945949983,   -0.00432430999505057594,
    0.0016394756169413358,    -0.000576375574538582366, 0.000188502885095841656, -0.000057541950100821037,
    0.0000164484480707288971, -4.41673835845875056e-6,  1.11738753912010372e-6,  -2.67079385394061173e-7,
    6.04699502254191895e-8,   -1.30002500998624804e-8,  2.65982372468238665e-9,  -5.18979560163526291e-10,
    9.67580903537323691e-11,  -1.72682629144155571e-11, 2.95505266312963983e-12, -4.85644678311192946e-13,
    7.67618549860493562e-14,  -1.16853328779934517e-14, 1.71539128555513303e-15, -2.43127984654795469e-16,
    3.3307945188222381e-17,   -4.41534164647933938e-18};
constexpr double kFar0[] = {
    0.402245205507054416,     0.00336911647825569409,   0.0000688975834691682398, 2.89137052083475648e-6,
    2.04891858946906374e-7,   2.26666899049817806e-8,   3.39623202570838635e-9,   4.94060238822496959e-10,
    1.18891471078464383e-11,  -3.14991652796324136e-11, -1.32158118404477131e-11, -1.79417853150680612e-12,
    7.18012445138366623e-13,  3.8527783827421427e-13,   1.54008621752140983e-14,  -4.15056934728722209e-14,
    -9.55484669882830765e-15, 3.81168066935262242e-15,  1.77256013305652638e-15,  -3.42548561967721913e-16,
    -2.82762398051658348e-16, 3.46122286769746109e-17,  4.46562142029676e-17,     -4.83050448594418207e-18,
    -7.23318048787475395e-18};
constexpr double kNear1[] = {
    0.126293593221816827,    -0.176416518357834055,    0.102643658689847095,     -0.0529459812080949914,
    0.0247264490306265168,   -0.0105640848946261982,   0.00415642294431288816,   -0.00151357245063125315,
    0.000512285956168575773, -0.000161760815825896746, 0.0000478156510755005423, -0.0000132731636560394358,
    3.47025130813767848e-6,  -8.56872026469545474e-7,  2.00329475355213526e-7,   -4.44505912879632808e-8,
    9.38153738649577178e-9,  -1.88724975172282929e-9,  3.62559028155211704e-10,  -6.66348972350202774e-11,
    1.17361862988909016e-11, -1.98397439776494372e-12, 3.22379336594557471e-13,  -5.04218550472791169e-14,
    7.60068429473540693e-15, -1.10559694773538631e-15, 1.55363195773620047e-16,  -2.11142121435816608e-17,
    2.77791411276104637e-18};
constexpr double kFar1[] = {
    0.38928811750914006,      -0.00976109749136146841,  -0.000110588938762623716, -3.88256480887769039e-6,
    -2.51223623787020893e-7,  -2.63146884688951951e-8,  -3.83538038596423702e-9,  -5.58974346219658381e-10,
    -1.89749581235054123e-11, 3.25260358301548824e-11,  1.41258074366137813e-11,  2.03562854414708951e-12,
    -7.19855177624590851e-13, -4.08355111109219732e-13, -2.10154184277266431e-14, 4.27244001671195135e-14,
    1.04202769841288028e-14,  -3.8144030724370078e-15,  -1.88035477551078245e-15, 3.30820231092092828e-16,
    2.96262899764595014e-16,  -3.20952592199342396e-17, -4.65030536848935833e-17, 4.41434832307170795e-18,
    7.51729631084210481e-18};

// Of x >= 0.
Tensor near_or_far(const Tensor& x, std::span<const double> near, std::span<const double> far, bool odd) {
  const Tensor low = minimum(x, 8), high = maximum(x, 8);
  const Tensor below = chebyshev(sub(mul(low, 0.25), 1), near);
  const Tensor above = div(chebyshev(sub(div(16, high), 1), far), sqrt(high));
  return where(le(x, 8), odd ? mul(below, low) : below, above);
}

Tensor scaled0(const Tensor& x) { return near_or_far(abs(x), kNear0, kFar0, false); }
// Odd, with a slope at 0.
Tensor scaled1(const Tensor& x) {
  const Tensor size = where(lt(x, 0), neg(x), x), y = near_or_far(size, kNear1, kFar1, true);
  return where(lt(x, 0), neg(y), y);
}
Tensor whole0(const Tensor& x) { return mul(exp(abs(x)), scaled0(x)); }
Tensor whole1(const Tensor& x) { return mul(exp(abs(x)), scaled1(x)); }

// y / x, but 1 / 2 near 0, where y has lost its digits.
Tensor slope(const Tensor& y, const Tensor& x) {
  const Tensor is_small = lt(abs(x), 1e-20);
  return where(is_small, 0.5, div(y, where(is_small, 1, x)));
}
}  // namespace

Tensor i0(const Tensor& x) {
  static constexpr auto kRule =
      rule("i0", gradient<kInput0>([](const Tensor& grad, const Tensor& x) { return mul(grad, i1(x)); }));
  return differentiable(kRule, in_wide("i0", x, whole0), x);
}

Tensor i0e(const Tensor& x) {
  static constexpr auto kRule =
      rule("i0e", gradient<kInput0, kOutput>([](const Tensor& grad, const Tensor& x, const Tensor& y) {
             return mul(grad, sub(i1e(x), mul(sign(x), y)));
           }));
  return differentiable(kRule, in_wide("i0e", x, scaled0), x);
}

Tensor i1(const Tensor& x) {
  static constexpr auto kRule =
      rule("i1", gradient<kInput0, kOutput>([](const Tensor& grad, const Tensor& x, const Tensor& y) {
             return mul(grad, sub(i0(x), where(isinf(y), 0, slope(y, x))));
           }));
  return differentiable(kRule, in_wide("i1", x, whole1), x);
}

Tensor i1e(const Tensor& x) {
  static constexpr auto kRule =
      rule("i1e", gradient<kInput0, kOutput>([](const Tensor& grad, const Tensor& x, const Tensor& y) {
             return mul(grad, sub(sub(i0e(x), mul(sign(x), y)), slope(y, x)));
           }));
  return differentiable(kRule, in_wide("i1e", x, scaled1), x);
}

}  // namespace plugrad
