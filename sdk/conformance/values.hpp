// Values for tests: special values, random bits, random numbers of a range.
#pragma once
#include <sdk/conformance/array.hpp>

#include <random>

namespace plugrad::conformance {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  uint64_t bits() { return engine_(); }
  int64_t below(int64_t n) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(n)); }
  double uniform(double low, double high) { return low + (high - low) * static_cast<double>(engine_() >> 11) * 0x1p-53; }
  bool one_in(int64_t n) { return below(n) == 0; }

 private:
  std::mt19937_64 engine_;
};

// NaN, infinities, -0, denormals, extremes and their neighbours; for integers, extremes and their neighbours.
const std::vector<long double>& specials(uint8_t dtype);
inline constexpr int64_t kCrossExtent = 36;  // at least as many as any dtype has special values

// The range of an input's ordinary values.
struct Range {
  double low = -10, high = 10;
};

long double draw_in(uint8_t dtype, Range range, Random& random);     // from the range
long double draw_wide(uint8_t dtype, Random& random);                // any bits
long double draw_mixed(uint8_t dtype, Range range, Random& random);  // from the range, any bits, or a special value

Array random_array(uint8_t dtype, const Shape& shape, Range range, Random& random);
Array mixed_array(uint8_t dtype, const Shape& shape, Range range, Random& random);
// Every special value (of one operand) or every pair of them (operand `digit` of `operands`); then mixed values.
Array crossed_array(uint8_t dtype, const Shape& shape, Range range, int digit, int operands, Random& random);
// Overwrites some elements with signalling NaN: a conversion to a wider type and back would change their bits.
void put_signalling_nans(Array& array);
// Values from the range; one in `rarity` is special.
Array sprinkled_array(uint8_t dtype, const Shape& shape, Range range, int64_t rarity, Random& random);
Array index_array(const Shape& shape, int64_t extent, Random& random);

}  // namespace plugrad::conformance
