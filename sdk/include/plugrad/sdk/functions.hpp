// The function of each elementwise op for a single element, shared by all backends written in C++. Compilers can vectorise
// this plain code, and CUDA compiles it as well. A backend may replace a function by a faster function.
// plugrad-conform does not use these functions: it has its own references.
#pragma once
#include <plugrad/sdk/abi.h>
#include <plugrad/sdk/dtypes.hpp>

#include <cmath>
#include <limits>
#include <type_traits>

#pragma GCC visibility push(hidden)
namespace plugrad {
inline namespace sdk_v0_r0 {

// The type for wrapping arithmetic of integers: overflow of signed integers is undefined, also overflow of the int in which
// C++ computes with small integers.
template <class T, bool = std::is_integral_v<T> && !std::is_same_v<T, bool>> struct WrappingOf {
  using type = T;
};
template <class T> struct WrappingOf<T, true> {
  using type = std::make_unsigned_t<decltype(T() + 0)>;
};
template <class T> using Wrapping = typename WrappingOf<T>::type;

// OpFunction<opcode>()(inputs...) returns the output's element. All inputs but conditions have the same type T. The caller
// widens elements of storage-only types first, and rounds the result.
template <uint32_t opcode> struct OpFunction;

// Minimax fits of erf in double: erf(x) / x - 1 as a polynomial in x^2 on [0, 1], and -ln(1 - erf(x)) as a polynomial in x
// on [1, kErfEnd]; beyond kErfEnd erf(x) rounds to 1.
inline constexpr double kErfNear[] = {0.12837916709551256565,    -0.37612638903183519541,   0.11283791670944184793,
                                      -0.026866170643111481407,  0.0052239776061186138528,  -0.00085483259293221707276,
                                      0.00012055293577152761939, -1.4924712307185836806e-5, 1.6447131638251597496e-6,
                                      -1.6206314289113782329e-7, 1.3710982748678366599e-8,  -7.7794729484268154071e-10};
inline constexpr double kErfFar[] = {
    1.8161767786314725149e-6,  1.1283618233487701788,      0.63669674481281069549,     0.10256185658091168638,
    -0.018730107575585493723,  -0.00075985749501581819792, 0.0022707939769566749982,   -0.0010492101484064269116,
    0.00030602651367738618974, -6.2214278570773073774e-5,  8.4375352422037476969e-6,   -5.8321545660853360057e-7,
    -2.5677032669791653512e-8, 1.0317393357919167019e-8,   -9.7394992719099554229e-10, 3.4725751618041984299e-11};
inline constexpr double kErfEnd = 5.95;

// Of GELU: 1 / sqrt(2), 1 / sqrt(2 pi), and the factors sqrt(2 / pi) and 0.044715 of its approximation. Beyond kGeluEnd the
// approximation's logistic function rounds to 0 or 1.
inline constexpr double kRootHalf = 0.70710678118654752440, kRootTwoPi = 0.39894228040143267794;
inline constexpr double kGeluScale = 0.79788456080286535588, kGeluCubic = 0.044715, kGeluEnd = 64;

template <> struct OpFunction<PLUGRAD_OP_NEG> {
  template <class T> PLUGRAD_FUNCTION T operator()(T x) const {
#ifdef __CUDA_ARCH__
    // In min(min(x, -y), z) of int32, ptxas 13.0 drops the sign of y for sm_90, unless it sees no negation.
    if constexpr (std::is_same_v<T, int32_t>) {
      uint32_t inverted;
      asm("not.b32 %0, %1;" : "=r"(inverted) : "r"(x));
      return static_cast<T>(inverted + 1);
    }
#endif
    return static_cast<T>(-static_cast<Wrapping<T>>(x));
  }
};
template <> struct OpFunction<PLUGRAD_OP_ABS> {
  template <class T> PLUGRAD_FUNCTION T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>) return std::fabs(x);
    else return x < 0 ? static_cast<T>(-static_cast<Wrapping<T>>(x)) : x;
  }
};
template <> struct OpFunction<PLUGRAD_OP_SIGN> {
  template <class T> PLUGRAD_FUNCTION T operator()(T x) const {
    const T positive = x > 0 ? T(1) : x;
    return x < 0 ? T(-1) : positive;
  }
};
template <> struct OpFunction<PLUGRAD_OP_SQRT> {
  template <class T> PLUGRAD_FUNCTION T operator()(T x) const { return std::sqrt(x); }
};
template <> struct OpFunction<PLUGRAD_OP_EXP> {
  template <class T> PLUGRAD_FUNCTION T operator()(T x) const { return std::exp(x); }
};
template <> struct OpFunction<PLUGRAD_OP_LOG> {
  template <class T> PLUGRAD_FUNCTION T operator()(T x) const { return std::log(x); }
};
template <> struct OpFunction<PLUGRAD_OP_TANH> {
  template <class T> PLUGRAD_FUNCTION T operator()(T x) const { return std::tanh(x); }
};
template <> struct OpFunction<PLUGRAD_OP_RELU> {
  template <class T> PLUGRAD_FUNCTION T operator()(T x) const { return x < 0 ? T(0) : x; }
};
template <> struct OpFunction<PLUGRAD_OP_SIGMOID> {
  template <class T> PLUGRAD_FUNCTION T operator()(T x) const {
    const T e = std::exp(-std::fabs(x));  // e^-x would overflow long before the result is 0
    return (x < 0 ? e : T(1)) / (1 + e);
  }
};
template <> struct OpFunction<PLUGRAD_OP_ERF> {
  template <class T> PLUGRAD_FUNCTION T operator()(T x) const { return std::erf(x); }
};
template <> struct OpFunction<PLUGRAD_OP_GELU> {
  template <class T> PLUGRAD_FUNCTION T operator()(T x) const { return x * below<T>(x); }
  // The normal distribution function.
  template <class T> PLUGRAD_FUNCTION static T below(T x) { return T(0.5) * std::erfc(x * static_cast<T>(-kRootHalf)); }
};
template <> struct OpFunction<PLUGRAD_OP_GELU_TANH> {
  template <class T> PLUGRAD_FUNCTION T operator()(T x) const {
    const T e = std::exp(-std::fabs(twice_u<T>(x)));
    return (x < 0 ? x * e : x) / (1 + e);
  }
  template <class T> PLUGRAD_FUNCTION static T twice_u(T x) {
    return static_cast<T>(2 * kGeluScale) * (x * (1 + static_cast<T>(kGeluCubic) * x * x));
  }
};
template <> struct OpFunction<PLUGRAD_OP_SILU> {
  template <class T> PLUGRAD_FUNCTION T operator()(T x) const {
    const T e = std::exp(-std::fabs(x));
    return (x < 0 ? x * e : x) / (1 + e);
  }
};

template <> struct OpFunction<PLUGRAD_OP_SIN> {
  template <class T> PLUGRAD_FUNCTION T operator()(T x) const { return std::sin(x); }
};
template <> struct OpFunction<PLUGRAD_OP_COS> {
  template <class T> PLUGRAD_FUNCTION T operator()(T x) const { return std::cos(x); }
};
template <> struct OpFunction<PLUGRAD_OP_ATAN> {
  template <class T> PLUGRAD_FUNCTION T operator()(T x) const { return std::atan(x); }
};

template <> struct OpFunction<PLUGRAD_OP_ADD> {
  template <class T> PLUGRAD_FUNCTION T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  }
};
template <> struct OpFunction<PLUGRAD_OP_SUB> {
  template <class T> PLUGRAD_FUNCTION T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
  }
};
template <> struct OpFunction<PLUGRAD_OP_MUL> {
  template <class T> PLUGRAD_FUNCTION T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  }
};
template <> struct OpFunction<PLUGRAD_OP_DIV> {
  template <class T> PLUGRAD_FUNCTION T operator()(T a, T b) const { return a / b; }
};
template <> struct OpFunction<PLUGRAD_OP_POW> {
  template <class T> PLUGRAD_FUNCTION T operator()(T a, T b) const { return std::pow(a, b); }
};
template <> struct OpFunction<PLUGRAD_OP_MAXIMUM> {
  template <class T> PLUGRAD_FUNCTION T operator()(T a, T b) const {
    const T larger = a > b ? a : b;  // b where a is NaN
    return b != b ? b : (a != a ? a : larger);
  }
};
template <> struct OpFunction<PLUGRAD_OP_MINIMUM> {
  template <class T> PLUGRAD_FUNCTION T operator()(T a, T b) const {
    const T smaller = a < b ? a : b;
    return b != b ? b : (a != a ? a : smaller);
  }
};

// The smallest integer divided by -1 traps on some processors, so a divisor of -1 never reaches a division.
template <> struct OpFunction<PLUGRAD_OP_FMOD> {
  template <class T> PLUGRAD_FUNCTION T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) return std::fmod(a, b);
    else return b == T(0) || (std::is_signed_v<T> && b == T(-1)) ? T(0) : static_cast<T>(a % b);
  }
};
template <> struct OpFunction<PLUGRAD_OP_QUOTIENT> {
  template <class T> PLUGRAD_FUNCTION T operator()(T a, T b) const {
    if (b == T(0)) return T(0);
    if constexpr (std::is_signed_v<T>)
      if (b == T(-1)) return static_cast<T>(-static_cast<Wrapping<T>>(a));
    return static_cast<T>(a / b);
  }
};
template <> struct OpFunction<PLUGRAD_OP_BITWISE_AND> {
  template <class T> PLUGRAD_FUNCTION T operator()(T a, T b) const { return static_cast<T>(a & b); }
};
template <> struct OpFunction<PLUGRAD_OP_BITWISE_OR> {
  template <class T> PLUGRAD_FUNCTION T operator()(T a, T b) const { return static_cast<T>(a | b); }
};
template <> struct OpFunction<PLUGRAD_OP_BITWISE_XOR> {
  template <class T> PLUGRAD_FUNCTION T operator()(T a, T b) const { return static_cast<T>(a ^ b); }
};
// is_part: whether a shift by this many bits leaves some bits of the number.
template <class T> inline constexpr int kBitsOf = static_cast<int>(8 * sizeof(T));
template <class T> PLUGRAD_FUNCTION bool is_part(T bits) { return bits >= T(0) && bits < static_cast<T>(kBitsOf<T>); }
template <> struct OpFunction<PLUGRAD_OP_BITWISE_LEFT_SHIFT> {
  template <class T> PLUGRAD_FUNCTION T operator()(T a, T b) const {
    return is_part<T>(b) ? static_cast<T>(static_cast<Wrapping<T>>(a) << b) : T(0);
  }
};
template <> struct OpFunction<PLUGRAD_OP_BITWISE_RIGHT_SHIFT> {
  template <class T> PLUGRAD_FUNCTION T operator()(T a, T b) const {
    if constexpr (std::is_unsigned_v<T>) return is_part<T>(b) ? static_cast<T>(a >> b) : T(0);
    else return static_cast<T>(a >> (is_part<T>(b) ? b : static_cast<T>(kBitsOf<T> - 1)));
  }
};

template <> struct OpFunction<PLUGRAD_OP_EQ> {
  template <class T> PLUGRAD_FUNCTION bool operator()(T a, T b) const { return a == b; }
};
template <> struct OpFunction<PLUGRAD_OP_NE> {
  template <class T> PLUGRAD_FUNCTION bool operator()(T a, T b) const { return a != b; }
};
template <> struct OpFunction<PLUGRAD_OP_LT> {
  template <class T> PLUGRAD_FUNCTION bool operator()(T a, T b) const { return a < b; }
};
template <> struct OpFunction<PLUGRAD_OP_LE> {
  template <class T> PLUGRAD_FUNCTION bool operator()(T a, T b) const { return a <= b; }
};
template <> struct OpFunction<PLUGRAD_OP_WHERE> {
  template <class T> PLUGRAD_FUNCTION T operator()(bool condition, T a, T b) const { return condition ? a : b; }
};

template <> struct OpFunction<PLUGRAD_OP_RELU_BACKWARD> {
  template <class T> PLUGRAD_FUNCTION T operator()(T grad, T x) const { return x <= 0 ? T(0) : grad; }
};
template <> struct OpFunction<PLUGRAD_OP_SIGMOID_BACKWARD> {
  template <class T> PLUGRAD_FUNCTION T operator()(T grad, T y) const { return grad * (y * (1 - y)); }
};
template <> struct OpFunction<PLUGRAD_OP_TANH_BACKWARD> {
  template <class T> PLUGRAD_FUNCTION T operator()(T grad, T y) const { return grad * (1 - y * y); }
};
template <> struct OpFunction<PLUGRAD_OP_GELU_BACKWARD> {
  template <class T> PLUGRAD_FUNCTION T operator()(T grad, T x) const {
    const T density = static_cast<T>(kRootTwoPi) * std::exp(T(-0.5) * x * x);
    return grad * (OpFunction<PLUGRAD_OP_GELU>::below<T>(x) + x * density);
  }
};
// The derivative of x s(v(x)) with a logistic function s is s + x s (1 - s) v'.
template <class T> PLUGRAD_FUNCTION T gated_slope(T x, T v, T slope) {
  const T e = std::exp(-std::fabs(v)), r = 1 / (1 + e);
  return (x < 0 ? e : T(1)) * r + x * (e * r) * r * slope;
}
template <> struct OpFunction<PLUGRAD_OP_GELU_TANH_BACKWARD> {
  template <class T> PLUGRAD_FUNCTION T operator()(T grad, T x) const {
    constexpr T kEnd = static_cast<T>(kGeluEnd);  // a larger square may overflow, and e is 0
    const T bounded = x > kEnd ? kEnd : x < -kEnd ? -kEnd : x;
    const T slope = static_cast<T>(2 * kGeluScale) * (1 + static_cast<T>(3 * kGeluCubic) * bounded * bounded);
    return grad * gated_slope<T>(x, OpFunction<PLUGRAD_OP_GELU_TANH>::twice_u<T>(bounded), slope);
  }
};
template <> struct OpFunction<PLUGRAD_OP_SILU_BACKWARD> {
  template <class T> PLUGRAD_FUNCTION T operator()(T grad, T x) const { return grad * gated_slope<T>(x, x, T(1)); }
};

// The function of FILL and COPY.
struct Identity {
  template <class T> PLUGRAD_FUNCTION T operator()(T x) const { return x; }
};

// The function of CAST. To may be any type that can hold the dtype's values.
template <class To> struct Conversion {
  template <class From> PLUGRAD_FUNCTION To operator()(From x) const {
    if constexpr (std::is_same_v<To, bool>) {
      return x != From(0);
    } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
      // Both limits are 0 or powers of two, exact in From; converting a value beyond them is undefined.
      constexpr From kEnd = static_cast<From>(kMost / 2 + 1) * 2;
      if (x >= kEnd) return kMost;
      if (x < static_cast<From>(kLeast)) return kLeast;
      return x == x ? static_cast<To>(x) : To(0);
    } else {
      return static_cast<To>(x);
    }
  }

 private:
  using Limits = std::numeric_limits<std::conditional_t<std::is_integral_v<To>, To, int>>;
  static constexpr auto kLeast = Limits::min(), kMost = Limits::max();
};

}  // namespace sdk_v0_r0
}  // namespace plugrad
#pragma GCC visibility pop
