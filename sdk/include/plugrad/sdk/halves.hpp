// The 16-bit floating types: bfloat16, the upper half of an f32, and float16, IEEE 754's binary16. They are for storage
// only: kernels compute in f32 and round the stored results.
#pragma once
#include <cstdint>
#include <type_traits>

// Marks a function that CUDA also compiles for the device.
#ifdef __CUDACC__
#define PLUGRAD_FUNCTION __host__ __device__ __forceinline__
#else
#define PLUGRAD_FUNCTION [[gnu::always_inline]] inline
#endif

#pragma GCC visibility push(hidden)
namespace plugrad {
inline namespace sdk_v0_r0 {

namespace detail {
// The bits of an f32 that rounds to the same 16-bit number as x. A wider x is rounded to odd (Boldo and Melquiond, "When
// double rounding is odd", 2005): the last bit records that the f32 is inexact, so rounding twice equals rounding once.
struct OddRounding {
  template <class T> PLUGRAD_FUNCTION static constexpr uint32_t single(T x) {
    if constexpr (std::is_same_v<T, float>) return __builtin_bit_cast(uint32_t, x);
    else if constexpr (std::is_integral_v<T> && sizeof(T) > 4) return from_double(odd_double(x));
    else return from_double(static_cast<double>(x));
  }

 private:
  PLUGRAD_FUNCTION static constexpr uint32_t from_double(double x) {
    const float single = static_cast<float>(x);
    const uint32_t bits = __builtin_bit_cast(uint32_t, single);
    const double back = single;
    if (back == x || x != x) return bits;
    const bool grew = (back < 0 ? -back : back) > (x < 0 ? -x : x);
    return (bits - grew) | 1;
  }
  template <class T> PLUGRAD_FUNCTION static constexpr double odd_double(T x) {
    uint64_t size = x < 0 ? -static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
    if (size >> 53) size = (size & ~uint64_t{0x7ff}) | (size & 0x7ff ? 0x800 : 0);
    const double exact = static_cast<double>(size);
    return x < 0 ? -exact : exact;
  }
};
}  // namespace detail

struct BFloat16 {
  uint16_t bits;

  BFloat16() = default;
  // Rounds once, to the nearest, ties to even. NaN stays NaN.
  template <class T> PLUGRAD_FUNCTION constexpr explicit BFloat16(T x) : bits(rounded(detail::OddRounding::single(x))) {}
  PLUGRAD_FUNCTION constexpr operator float() const { return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16); }

 private:
  PLUGRAD_FUNCTION static constexpr uint16_t rounded(uint32_t single) {
    const uint32_t nearest = (single + 0x7fffu + (single >> 16 & 1)) >> 16;
    const uint32_t quiet = (single >> 16) | 0x40;
    return static_cast<uint16_t>((single & 0x7fffffffu) > 0x7f800000u ? quiet : nearest);
  }
};
static_assert(sizeof(BFloat16) == 2);

struct Float16 {
  uint16_t bits;

  Float16() = default;
  // Rounds once, to the nearest, ties to even; from 65520 on to infinity. NaN stays NaN.
  template <class T> PLUGRAD_FUNCTION constexpr explicit Float16(T x) : bits(rounded(detail::OddRounding::single(x))) {}
  PLUGRAD_FUNCTION constexpr operator float() const {
    const uint32_t sign = (bits & 0x8000u) << 16, size = (bits & 0x7fffu) << 13;
    return __builtin_bit_cast(float, sign | widened(size));
  }

 private:
  static constexpr uint32_t kInfinity = 0x7f800000, kBias = 112u << 23;  // the difference of the biases of the exponents
  static constexpr uint32_t kLeastNormal = 113u << 23;                   // 2^-14

  // size: exponent and fraction, where an f32 has them.
  PLUGRAD_FUNCTION static constexpr uint32_t widened(uint32_t size) {
    const uint32_t exponent = size & 0x0f800000u;
    if (exponent == 0x0f800000u) return size | kInfinity;
    if (exponent != 0) return size + kBias;
    // A subnormal number: the fraction after the leading bit of 2^-14, less 2^-14.
    const float above = __builtin_bit_cast(float, size + kLeastNormal) - __builtin_bit_cast(float, kLeastNormal);
    return __builtin_bit_cast(uint32_t, above);
  }

  PLUGRAD_FUNCTION static constexpr uint16_t rounded(uint32_t single) {
    const uint32_t sign = single >> 16 & 0x8000u;
    return static_cast<uint16_t>(sign | rounded_size(single & 0x7fffffffu));
  }
  PLUGRAD_FUNCTION static constexpr uint32_t rounded_size(uint32_t size) {
    if (size > kInfinity) return 0x7e00u | (size >> 13 & 0x3ffu);
    if (size >= 0x47800000u) return 0x7c00u;  // 65536 and more
    if (size >= kLeastNormal) return (size - kBias + 0xfffu + (size >> 13 & 1)) >> 13;
    // The last bit of an f32 near 1/2 is 2^-24, the unit of subnormal numbers: the addition rounds to it.
    return __builtin_bit_cast(uint32_t, __builtin_bit_cast(float, size) + 0.5f) - __builtin_bit_cast(uint32_t, 0.5f);
  }
};
static_assert(sizeof(Float16) == 2);

}  // namespace sdk_v0_r0
}  // namespace plugrad
#pragma GCC visibility pop
