// BFloat16 rounds once, to the nearest value and ties to even, from every source type.
#include <plugrad/sdk/halves.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace plugrad {
namespace {

BFloat16 of_bits(uint16_t bits) {
  BFloat16 x;
  x.bits = bits;
  return x;
}

// The nearest finite bfloat16 of a number whose magnitude is below the largest bfloat16, by exact comparison of the two
// adjacent values.
uint16_t nearest(long double x) {
  uint16_t low = 0, high = 0x7f7f;
  const long double size = std::fabs(x);
  while (high - low > 1) {
    const uint16_t middle = static_cast<uint16_t>((low + high) / 2);
    (static_cast<long double>(static_cast<float>(of_bits(middle))) <= size ? low : high) = middle;
  }
  const long double below = static_cast<float>(of_bits(low)), above = static_cast<float>(of_bits(high));
  const bool up = size - below > above - size || (size - below == above - size && high % 2 == 0);
  return static_cast<uint16_t>((up ? high : low) | (std::signbit(x) ? 0x8000 : 0));
}

TEST(BFloat16, EveryValueComesBackFromItsF32) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = of_bits(static_cast<uint16_t>(bits));
    if (std::isnan(value)) EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(value))));
    else EXPECT_EQ(BFloat16(value).bits, bits);
  }
}

TEST(BFloat16, DoublesAreRoundedOnce) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200000; ++i) {
    // Numbers near a tie between two bfloat16, for which an earlier rounding to f32 gives wrong results.
    const float start = of_bits(static_cast<uint16_t>(random() % 0x7f00));
    const float next = std::nextafter(start, std::numeric_limits<float>::max());
    const float above = of_bits(static_cast<uint16_t>(BFloat16(start).bits + 1));
    const double tie = (static_cast<double>(start) + above) / 2;
    const double step = (static_cast<double>(next) - start) * 0x1p-20 * static_cast<double>(random() % 5);
    for (const double x : {tie, tie + step, tie - step, -tie - step}) EXPECT_EQ(BFloat16(x).bits, nearest(x)) << x;
  }
}

TEST(BFloat16, IntegersAreRoundedOnce) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 200000; ++i) {
    const auto wide = static_cast<int64_t>(random() >> (random() % 64));
    for (const int64_t x : {wide, -wide}) EXPECT_EQ(BFloat16(x).bits, nearest(static_cast<long double>(x))) << x;
  }
  // Slightly more than half a unit: a first rounding to double would make it a tie.
  EXPECT_EQ(BFloat16((int64_t{0x101} << 54) + 1).bits, nearest(0x101p54L + 1));
  EXPECT_EQ(BFloat16(std::numeric_limits<int64_t>::min()).bits, nearest(-0x1p63L));
  EXPECT_EQ(static_cast<float>(BFloat16(true)), 1.0f);
}

TEST(BFloat16, WhatIsTooLargeBecomesInfinity) {
  EXPECT_EQ(BFloat16(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_EQ(BFloat16(1e300).bits, 0x7f80);
  EXPECT_EQ(BFloat16(-std::numeric_limits<double>::infinity()).bits, 0xff80);
  EXPECT_EQ(BFloat16(1e-300).bits, 0);
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(std::numeric_limits<double>::quiet_NaN()))));
}

}  // namespace
}  // namespace plugrad
