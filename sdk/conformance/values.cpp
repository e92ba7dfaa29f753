#include <sdk/conformance/values.hpp>

#include <cmath>
#include <cstring>
#include <limits>

namespace plugrad::conformance {
namespace {

template <class T> std::vector<long double> floating_specials() {
  using L = std::numeric_limits<T>;
  const long double largest = L::max(), tiny = L::denorm_min(), normal = L::min(), eps = L::epsilon();
  return {0.0L,
          -0.0L,
          1,
          -1,
          2,
          -2,
          0.5L,
          -0.5L,
          3,
          1.5L,
          L::infinity(),
          -L::infinity(),
          L::quiet_NaN(),
          tiny,
          -tiny,
          normal - tiny,
          normal,
          -normal,
          largest,
          -largest,
          eps,
          1 + eps,
          1 - eps / 2,
          16777215,
          0x1p31L,
          -0x1p31L,
          0x1p63L,
          -0x1p63L,
          255.5L,
          2.5L,
          std::log(largest),
          -std::log(largest),
          std::log(tiny)};
}

template <class T> std::vector<long double> integer_specials() {
  using L = std::numeric_limits<T>;
  std::vector<long double> values = {0,       1, 2, 3, 7, 10, 100, L::max(), L::max() - 1, L::max() / 2, L::max() / 2 + 1,
                                     L::min()};
  if (L::is_signed) values.insert(values.end(), {-1, -2, -3, -7, -100, static_cast<long double>(L::min()) + 1});
  if (sizeof(T) >= 4) values.insert(values.end(), {65535, 65536, 16777217, 46341});
  if (sizeof(T) == 8) values.insert(values.end(), {0x1p31L, 0x1p32L + 1, 0x1p53L + 1, -0x1p53L - 1, 3037000500.0L});
  return values;
}

template <class T> long double reinterpreted(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <class Draw> Array filled(uint8_t dtype, const Shape& shape, Draw draw) {
  Array array(dtype, shape);
  for (int64_t i = 0; i < array.count(); ++i) array.set(i, draw(i));
  return array;
}

}  // namespace

const std::vector<long double>& specials(uint8_t dtype) {
  static const std::vector<long double> f32 = floating_specials<float>(), f64 = floating_specials<double>(),
                                        i32 = integer_specials<int32_t>(), i64 = integer_specials<int64_t>(),
                                        u8 = integer_specials<uint8_t>(), boolean = {0, 1};
  switch (dtype) {
    case PLUGRAD_F32: return f32;
    case PLUGRAD_F64: return f64;
    case PLUGRAD_I32: return i32;
    case PLUGRAD_I64: return i64;
    case PLUGRAD_U8: return u8;
    default: return boolean;
  }
}

long double draw_in(uint8_t dtype, Range range, Random& random) {
  if (dtype == PLUGRAD_BOOL) return static_cast<long double>(random.below(2));
  const double value = random.uniform(range.low, range.high);
  if (is_floating(dtype)) return rounded(dtype, value);
  return static_cast<long double>(wrapped(dtype, static_cast<int64_t>(std::floor(value))));
}

long double draw_wide(uint8_t dtype, Random& random) {
  const uint64_t bits = random.bits();
  switch (dtype) {
    case PLUGRAD_F32: return reinterpreted<float>(bits);
    case PLUGRAD_F64: return reinterpreted<double>(bits);
    default: return static_cast<long double>(wrapped(dtype, static_cast<int64_t>(dtype == PLUGRAD_BOOL ? bits & 1 : bits)));
  }
}

long double draw_mixed(uint8_t dtype, Range range, Random& random) {
  switch (random.below(4)) {
    case 0: return specials(dtype)[random.below(specials(dtype).size())];
    case 1: return draw_wide(dtype, random);
    default: return draw_in(dtype, range, random);
  }
}

Array random_array(uint8_t dtype, const Shape& shape, Range range, Random& random) {
  return filled(dtype, shape, [&](int64_t) { return draw_in(dtype, range, random); });
}

Array mixed_array(uint8_t dtype, const Shape& shape, Range range, Random& random) {
  return filled(dtype, shape, [&](int64_t) { return draw_mixed(dtype, range, random); });
}

Array crossed_array(uint8_t dtype, const Shape& shape, Range range, int digit, int operands, Random& random) {
  const std::vector<long double>& values = specials(dtype);
  const int64_t n = static_cast<int64_t>(values.size());
  const int64_t crossed = operands == 1 ? n : n * n;
  return filled(dtype, shape, [&](int64_t i) {
    if (i >= crossed) return draw_mixed(dtype, range, random);
    return values[digit == 0 ? i % n : i / n % n];
  });
}

Array sprinkled_array(uint8_t dtype, const Shape& shape, Range range, int64_t rarity, Random& random) {
  return filled(dtype, shape, [&](int64_t) {
    if (random.one_in(rarity)) return specials(dtype)[random.below(specials(dtype).size())];
    return draw_in(dtype, range, random);
  });
}

Array index_array(const Shape& shape, int64_t extent, Random& random) {
  return filled(PLUGRAD_I64, shape, [&](int64_t) { return static_cast<long double>(random.below(extent)); });
}

}  // namespace plugrad::conformance
