// The elementwise functions of one element, exactly as sdk/ops.md defines them.
#pragma once
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <type_traits>

namespace plugrad::reference {

// What to calculate in, so that integers wrap: overflow of signed ones is undefined.
template <class T> using Wrapping = std::conditional_t<std::is_same_v<T, int64_t>, uint64_t, T>;

struct Same {
  template <class T> T operator()(T x) const { return x; }
};

struct Negate {
  template <class T> T operator()(T x) const { return static_cast<T>(-static_cast<Wrapping<T>>(x)); }
};
struct Abs {
  template <class T> T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>)
      return std::fabs(x);
    else
      return x < 0 ? Negate()(x) : x;
  }
};
struct Sign {
  template <class T> T operator()(T x) const { return x > 0 ? T(1) : x < 0 ? T(-1) : x; }
};
struct Sqrt {
  template <class T> T operator()(T x) const { return std::sqrt(x); }
};
struct Exp {
  template <class T> T operator()(T x) const { return std::exp(x); }
};
struct Log {
  template <class T> T operator()(T x) const { return std::log(x); }
};
struct Tanh {
  template <class T> T operator()(T x) const { return std::tanh(x); }
};
struct Relu {
  template <class T> T operator()(T x) const { return x < 0 ? T(0) : x; }
};
struct Sigmoid {
  template <class T> T operator()(T x) const {
    if (x < 0) return std::exp(x) / (1 + std::exp(x));  // e^-x would overflow long before the result is 0
    return 1 / (1 + std::exp(-x));
  }
};

struct Add {
  template <class T> T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  }
};
struct Subtract {
  template <class T> T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
  }
};
struct Multiply {
  template <class T> T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  }
};
struct Divide {
  template <class T> T operator()(T a, T b) const { return a / b; }
};
struct Power {
  template <class T> T operator()(T a, T b) const { return std::pow(a, b); }
};
struct Maximum {  // where b is NaN, the comparison fails and b is taken
  template <class T> T operator()(T a, T b) const { return std::isnan(a) || a > b ? a : b; }
};
struct Minimum {
  template <class T> T operator()(T a, T b) const { return std::isnan(a) || a < b ? a : b; }
};
struct Where {
  template <class T> T operator()(bool condition, T a, T b) const { return condition ? a : b; }
};

template <class To> struct Cast {
  template <class From> To operator()(From x) const {
    if constexpr (std::is_same_v<To, bool>) {
      return x != From(0);
    } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
      // Both limits are powers of two, exact in From; casting what is beyond them would be undefined.
      constexpr From kEnd = -static_cast<From>(std::numeric_limits<To>::min());
      if (std::isnan(x)) return 0;
      if (x >= kEnd) return std::numeric_limits<To>::max();
      return x < -kEnd ? std::numeric_limits<To>::min() : static_cast<To>(x);
    } else {
      return static_cast<To>(x);
    }
  }
};

}  // namespace plugrad::reference
