// bfloat16: the upper half of an f32. It is for storage only: kernels compute in f32 and round what they store.
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

struct BFloat16 {
  uint16_t bits;

  BFloat16() = default;
  // Rounds once, to the nearest, ties to even. NaN stays NaN.
  template <class T> PLUGRAD_FUNCTION constexpr explicit BFloat16(T x) : bits(rounded(nearby(x))) {}
  PLUGRAD_FUNCTION constexpr operator float() const { return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16); }

 private:
  PLUGRAD_FUNCTION static constexpr uint16_t rounded(uint32_t single) {
    const uint32_t nearest = (single + 0x7fffu + (single >> 16 & 1)) >> 16;
    const uint32_t quiet = (single >> 16) | 0x40;
    return static_cast<uint16_t>((single & 0x7fffffffu) > 0x7f800000u ? quiet : nearest);
  }

  // The bits of an f32 that rounds to the same bfloat16 as x. A wider x is rounded to odd (Boldo and Melquiond, "When double
  // rounding is odd", 2005): the last bit records that the f32 is inexact, so that rounding twice equals rounding once.
  template <class T> PLUGRAD_FUNCTION static constexpr uint32_t nearby(T x) {
    if constexpr (std::is_same_v<T, float>) return __builtin_bit_cast(uint32_t, x);
    else if constexpr (std::is_integral_v<T> && sizeof(T) > 4) return odd_single(odd_double(x));
    else return odd_single(static_cast<double>(x));
  }
  PLUGRAD_FUNCTION static constexpr uint32_t odd_single(double x) {
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
static_assert(sizeof(BFloat16) == 2);

}  // namespace sdk_v0_r0
}  // namespace plugrad
#pragma GCC visibility pop
