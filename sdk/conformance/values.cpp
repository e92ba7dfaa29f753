#include <sdk/conformance/values.hpp>

#include <cmath>
#include <cstring>

namespace plugrad::conformance {
namespace {

std::vector<long double> floating_specials(uint8_t dtype) {
  const FloatLimits& limits = limits_of(dtype);
  const long double largest = limits.largest, tiny = limits.smallest_denormal, normal = limits.smallest_normal;
  const long double eps = limits.epsilon, infinity = HUGE_VALL;
  std::vector<long double> values = {0.0L,
                                     -0.0L,
                                     1,
                                     -1,
                                     2,
                                     -2,
                                     0.5L,
                                     -0.5L,
                                     3,
                                     1.5L,
                                     infinity,
                                     -infinity,
                                     NAN,
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
  for (long double& value : values) value = rounded(dtype, value);
  return values;
}

std::vector<long double> integer_specials(const DTypeInfo& info) {
  const long double largest = std::ldexp(1.0L, info.digits) - 1, half = std::floor(largest / 2);
  std::vector<long double> values = {0, 1, 2, 3, 7, 10, 100, largest, largest - 1, half, half + 1, -largest - 1};
  values.insert(values.end(), {-1, -2, -3, -7, -100, -largest});
  if (info.size >= 4) values.insert(values.end(), {65535, 65536, 16777217, 46341});
  if (info.size == 8)
    values.insert(values.end(), {0x1p31L, 0x1p32L + 1, 0x1p53L + 1, -0x1p53L - 1, 3037000500.0L, 0x1p60L + 0x1p36L + 1});
  return values;
}

std::vector<long double> specials_of(const DTypeInfo& info) {
  switch (info.kind) {
    case Kind::boolean: return {0, 1};
    case Kind::integer: return integer_specials(info);
    case Kind::floating: return floating_specials(info.dtype);
    case Kind::complex: break;  // no kernel is asked for one
  }
  return {};
}

template <class Draw> Array filled(uint8_t dtype, const Shape& shape, Draw draw) {
  Array array(dtype, shape);
  for (int64_t i = 0; i < array.count(); ++i) array.set(i, draw(i));
  return array;
}

}  // namespace

const std::vector<long double>& specials(uint8_t dtype) {
  static const std::array<std::vector<long double>, kDTypeIds> kSpecials = [] {
    std::array<std::vector<long double>, kDTypeIds> all;
    for (const DTypeInfo& info : kDTypes) all[info.dtype] = specials_of(info);
    return all;
  }();
  return kSpecials[dtype];
}

long double draw_in(uint8_t dtype, Range range, Random& random) {
  if (dtype == PLUGRAD_BOOL) return static_cast<long double>(random.below(2));
  const double value = random.uniform(range.low, range.high);
  if (is_floating(dtype)) return rounded(dtype, value);
  return static_cast<long double>(wrapped(dtype, static_cast<int64_t>(std::floor(value))));
}

long double draw_wide(uint8_t dtype, Random& random) {
  const uint64_t bits = random.bits();
  long double value = 0;
  with_element_type(dtype, [&]<class T>(T) {
    if constexpr (std::is_same_v<T, bool>) {
      value = bits & 1;
    } else {
      T drawn;
      std::memcpy(&drawn, &bits, sizeof drawn);
      value = static_cast<long double>(drawn);
    }
  });
  return value;
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

void put_signalling_nans(Array& array) {
  const uint64_t size = element_size(array.dtype());
  const FloatLimits& limits = limits_of(array.dtype());
  const uint64_t stored = static_cast<uint64_t>(limits.digits - 1);  // bits of the stored significand
  const uint64_t exponent = ((uint64_t{1} << (size * 8 - 1 - stored)) - 1) << stored;
  for (int64_t i = 3; i < array.count(); i += 7) {
    const uint64_t bits = exponent | (1 + static_cast<uint64_t>(i) % 3);
    std::memcpy(array.element(i), &bits, size);  // the machine is little-endian
  }
}

Array index_array(const Shape& shape, int64_t extent, Random& random) {
  return filled(PLUGRAD_I64, shape, [&](int64_t) { return static_cast<long double>(random.below(extent)); });
}

}  // namespace plugrad::conformance
