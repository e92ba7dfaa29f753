// Division by a number known at launch, as a multiplication and a shift.
#pragma once
#include <plugrad/sdk/halves.hpp>

#include <bit>
#include <cstdint>

#pragma GCC visibility push(hidden)
namespace plugrad {
inline namespace sdk_v0_r0 {

// Granlund and Montgomery, "Division by invariant integers using multiplication", PLDI 1994. Dividend and divisor are below
// 2^31.
struct Divider {
  uint32_t divisor = 1, magic = 1, shift = 0;

  Divider() = default;
  explicit Divider(uint32_t d) : divisor(d), shift(static_cast<uint32_t>(std::bit_width(d - 1))) {
    magic = static_cast<uint32_t>((uint64_t(1) << 32) * ((uint64_t(1) << shift) - d) / d + 1);
  }

  PLUGRAD_FUNCTION uint32_t quotient(uint32_t n) const {
    const auto high = static_cast<uint32_t>((static_cast<uint64_t>(n) * magic) >> 32);
    return (high + n) >> shift;
  }
};

// The same for dividend and divisor below 2^63.
struct WideDivider {
  uint64_t magic = 1;
  uint32_t shift = 0;

  WideDivider() = default;
  explicit WideDivider(uint64_t d) : shift(static_cast<uint32_t>(std::bit_width(d - 1))) {
    __extension__ using Wide = unsigned __int128;
    magic = static_cast<uint64_t>((Wide(1) << 64) * ((uint64_t(1) << shift) - d) / d + 1);
  }

  PLUGRAD_FUNCTION uint64_t quotient(uint64_t n) const {
#ifdef __CUDA_ARCH__
    const uint64_t high = __umul64hi(n, magic);
#else
    __extension__ using Wide = unsigned __int128;
    const auto high = static_cast<uint64_t>(static_cast<Wide>(n) * magic >> 64);
#endif
    return (high + n) >> shift;
  }
};

}  // namespace sdk_v0_r0
}  // namespace plugrad
#pragma GCC visibility pop
