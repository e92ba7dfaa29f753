// The elementwise functions of one element, exactly as sdk/ops.md defines them.
#pragma once
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace plugrad::cuda {

// What to calculate in, so that integers wrap: overflow of signed ones is undefined.
template <class T, bool = std::is_integral_v<T>> struct WrappingOf { using type = T; };
template <class T> struct WrappingOf<T, true> { using type = std::make_unsigned_t<T>; };
template <class T> using Wrapping = typename WrappingOf<T>::type;

// The ends of a type's range; for floating ones the infinities.
template <class T>
inline constexpr T kTop = std::is_floating_point_v<T> ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
template <class T>
inline constexpr T kBottom = std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity()
                                                         : std::numeric_limits<T>::min();

template <class T> __device__ __forceinline__ bool is_nan(T x) { return x != x; }

struct Same {
  template <class T> __device__ T operator()(T x) const { return x; }
};
struct Negate {
  template <class T> __device__ T operator()(T x) const { return static_cast<T>(-static_cast<Wrapping<T>>(x)); }
};
struct Abs {
  template <class T> __device__ T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>)
      return std::fabs(x);
    else
      return x < 0 ? Negate()(x) : x;
  }
};
struct Sign {
  template <class T> __device__ T operator()(T x) const { return x > 0 ? T(1) : x < 0 ? T(-1) : x; }
};
struct Sqrt {
  template <class T> __device__ T operator()(T x) const { return std::sqrt(x); }
};
struct Exp {
  template <class T> __device__ T operator()(T x) const { return std::exp(x); }
};
struct Log {
  template <class T> __device__ T operator()(T x) const { return std::log(x); }
};
struct Tanh {
  template <class T> __device__ T operator()(T x) const { return std::tanh(x); }
};
struct Relu {
  template <class T> __device__ T operator()(T x) const { return x < 0 ? T(0) : x; }
};
struct Sigmoid {
  template <class T> __device__ T operator()(T x) const {
    const T e = std::exp(-std::fabs(x));  // e^-x would overflow long before the result is 0
    return (x < 0 ? e : T(1)) / (1 + e);
  }
};

struct Add {
  template <class T> __device__ T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  }
};
struct Subtract {
  template <class T> __device__ T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
  }
};
struct Multiply {
  template <class T> __device__ T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  }
};
struct Divide {
  template <class T> __device__ T operator()(T a, T b) const { return a / b; }
};
struct Power {
  template <class T> __device__ T operator()(T a, T b) const { return std::pow(a, b); }
};
struct Maximum {  // where b is NaN, the comparison fails and b is taken
  template <class T> __device__ T operator()(T a, T b) const { return is_nan(a) || a > b ? a : b; }
};
struct Minimum {
  template <class T> __device__ T operator()(T a, T b) const { return is_nan(a) || a < b ? a : b; }
};

struct Equal {
  template <class T> __device__ bool operator()(T a, T b) const { return a == b; }
};
struct NotEqual {
  template <class T> __device__ bool operator()(T a, T b) const { return a != b; }
};
struct Less {
  template <class T> __device__ bool operator()(T a, T b) const { return a < b; }
};
struct LessEqual {
  template <class T> __device__ bool operator()(T a, T b) const { return a <= b; }
};
struct Where {
  template <class T> __device__ T operator()(bool condition, T a, T b) const { return condition ? a : b; }
};

template <class To> struct Cast {
  template <class From> __device__ To operator()(From x) const {
    if constexpr (std::is_same_v<To, bool>) {
      return x != From(0);
    } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
      // Both limits are powers of two, exact in From; casting what is beyond them would be undefined.
      constexpr From kEnd = -static_cast<From>(kBottom<To>);
      if (is_nan(x)) return 0;
      if (x >= kEnd) return kTop<To>;
      return x < -kEnd ? kBottom<To> : static_cast<To>(x);
    } else {
      return static_cast<To>(x);
    }
  }
};

struct ReluBackward {
  template <class T> __device__ T operator()(T grad, T x) const { return x <= 0 ? T(0) : grad; }
};
struct SigmoidBackward {
  template <class T> __device__ T operator()(T grad, T y) const { return grad * (y * (1 - y)); }
};
struct TanhBackward {
  template <class T> __device__ T operator()(T grad, T y) const { return grad * (1 - y * y); }
};

}  // namespace plugrad::cuda
