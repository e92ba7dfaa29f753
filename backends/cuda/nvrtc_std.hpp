// The parts of the C++ standard library in use by the SDK's headers, for fusions compiled by NVRTC at run time: NVRTC has no
// standard headers. The name of each standard header leads to this file.
#pragma once

using int8_t = signed char;
using int16_t = short;
using int32_t = int;
using int64_t = long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned;
using uint64_t = unsigned long;
using uintptr_t = unsigned long;
using size_t = decltype(sizeof 0);

#define __extension__
#define offsetof(type, member) __builtin_offsetof(type, member)
#define UINT64_MAX 0xffffffffffffffffu
#define INT64_MAX 0x7fffffffffffffff
#define INT64_MIN (-INT64_MAX - 1)

namespace std {

using ::int16_t, ::int32_t, ::int64_t, ::int8_t, ::size_t, ::uint16_t, ::uint32_t, ::uint64_t, ::uint8_t, ::uintptr_t;
using ::atan, ::cos, ::erf, ::erfc, ::exp, ::fabs, ::fmod, ::log, ::pow, ::sin, ::sqrt, ::tanh;

// <type_traits>
template <bool value_> struct bool_constant {
  static constexpr bool value = value_;
};
template <class T, class U> inline constexpr bool is_same_v = false;
template <class T> inline constexpr bool is_same_v<T, T> = true;
template <class T> inline constexpr bool is_floating_point_v = is_same_v<T, float> || is_same_v<T, double>;
template <class T, class... U> inline constexpr bool is_among_v = (is_same_v<T, U> || ...);
template <class T>
inline constexpr bool is_integral_v = is_among_v<T, bool, char, signed char, unsigned char, short, unsigned short, int,
                                                 unsigned, long, unsigned long, long long, unsigned long long>;
template <class T> inline constexpr bool is_arithmetic_v = is_integral_v<T> || is_floating_point_v<T>;
template <class T> inline constexpr bool is_signed_v = is_arithmetic_v<T> && T(-1) < T(0);
template <class T> inline constexpr bool is_unsigned_v = is_integral_v<T> && !is_signed_v<T>;

template <bool, class T, class> struct conditional {
  using type = T;
};
template <class T, class U> struct conditional<false, T, U> {
  using type = U;
};
template <bool b, class T, class U> using conditional_t = typename conditional<b, T, U>::type;

template <class T> struct make_unsigned {
  using type = T;
};
template <> struct make_unsigned<signed char> {
  using type = unsigned char;
};
template <> struct make_unsigned<short> {
  using type = unsigned short;
};
template <> struct make_unsigned<int> {
  using type = unsigned;
};
template <> struct make_unsigned<long> {
  using type = unsigned long;
};
template <> struct make_unsigned<long long> {
  using type = unsigned long long;
};
template <class T> using make_unsigned_t = typename make_unsigned<T>::type;

// <limits>
template <class T, bool is_floating = is_floating_point_v<T>> struct numeric_limits {
  static constexpr T infinity() { return T(0); }
  static constexpr T min() {
    if constexpr (is_signed_v<T>) return static_cast<T>(-max() - 1);
    else return T(0);
  }
  static constexpr T max() {
    if constexpr (is_same_v<T, bool>) return true;
    else if constexpr (is_signed_v<T>) return static_cast<T>(static_cast<make_unsigned_t<T>>(~T(0)) >> 1);
    else return static_cast<T>(~T(0));
  }
};
template <class T> struct numeric_limits<T, true> {
  static constexpr T infinity() { return static_cast<T>(__builtin_bit_cast(float, 0x7f800000)); }
  static constexpr T min() { return is_same_v<T, float> ? static_cast<T>(0x1p-126) : static_cast<T>(0x1p-1022); }
  static constexpr T max() {
    return is_same_v<T, float> ? static_cast<T>(0x1.fffffep127) : static_cast<T>(0x1.fffffffffffffp1023);
  }
};

// <utility>
template <class T, T... n> struct integer_sequence {};
template <size_t... n> using index_sequence = integer_sequence<size_t, n...>;
template <size_t left, size_t... n> struct index_sequence_of : index_sequence_of<left - 1, left - 1, n...> {};
template <size_t... n> struct index_sequence_of<0, n...> {
  using type = index_sequence<n...>;
};
template <class... T> using index_sequence_for = typename index_sequence_of<sizeof...(T)>::type;

// <algorithm>
template <class T> constexpr const T& min(const T& a, const T& b) { return b < a ? b : a; }
template <class T> constexpr const T& max(const T& a, const T& b) { return a < b ? b : a; }

// <bit>
template <class T> constexpr int bit_width(T x) {
  int bits = 0;
  for (; x; x >>= 1) ++bits;
  return bits;
}

// <array>, <iterator>
template <class T, size_t n> struct array {
  T items[n];
  constexpr T& operator[](size_t i) { return items[i]; }
  constexpr const T& operator[](size_t i) const { return items[i]; }
};
template <class T, size_t n> constexpr size_t size(const T (&)[n]) { return n; }

}  // namespace std
