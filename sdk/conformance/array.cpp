#include <sdk/conformance/array.hpp>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

namespace plugrad::conformance {
namespace {

FloatLimits limits(const DTypeInfo& info) {
  const auto power = [](int exponent) { return std::ldexp(1.0L, exponent); };
  const long double epsilon = power(1 - info.digits), smallest = power(info.lowest_exponent());
  return {epsilon,     (2 - epsilon) * power(info.highest_exponent()),
          smallest,    smallest * epsilon,
          info.digits, info.lowest_exponent()};
}

// Rounds to the nearest number of a floating dtype, ties to even.
long double rounded_to(const FloatLimits& limits, long double value) {
  if (!std::isfinite(value) || value == 0) return value;
  int exponent = 0;
  std::frexp(value, &exponent);  // value = m 2^exponent, 0.5 <= m < 1
  const int unit = std::max(exponent - 1, limits.lowest_exponent) - (limits.digits - 1);
  const long double nearest = std::ldexp(std::nearbyint(std::ldexp(value, -unit)), unit);
  return std::fabs(nearest) > limits.largest ? std::copysign(HUGE_VALL, value) : nearest;
}

}  // namespace

int64_t count_of(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

std::string text_of(const Shape& shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + ")";
}

const FloatLimits& limits_of(uint8_t dtype) {
  static const std::array<FloatLimits, kDTypeIds> kLimits = [] {
    std::array<FloatLimits, kDTypeIds> all{};
    for (const DTypeInfo& info : kDTypes)
      if (info.kind == Kind::floating) all[info.dtype] = limits(info);
    return all;
  }();
  return kLimits[dtype];
}

int64_t wrapped(uint8_t dtype, int64_t value) {
  with_element_type(dtype, [&]<class T>(T) {
    if constexpr (std::is_integral_v<T>) value = static_cast<T>(value);
  });
  return value;
}

long double rounded(uint8_t dtype, long double value) {
  if (dtype == PLUGRAD_F32) return static_cast<float>(value);  // for these two the compiler's conversions are faster
  if (dtype == PLUGRAD_F64) return static_cast<double>(value);
  if (is_floating(dtype)) return rounded_to(limits_of(dtype), value);
  return static_cast<long double>(wrapped(dtype, static_cast<int64_t>(value)));
}

std::string text_of(uint8_t dtype, long double value) {
  char text[64];
  if (!is_floating(dtype)) return std::to_string(static_cast<int64_t>(value));
  std::snprintf(text, sizeof text, dtype_info(dtype)->digits <= 24 ? "%.9Lg" : "%.17Lg", value);
  return text;
}

long double Array::get(int64_t i) const {
  long double value = 0;
  with_element_type(dtype_, [&]<class T>(T) {
    std::conditional_t<std::is_same_v<T, bool>, uint8_t, T> held;  // a faulty plugin may write bytes other than 0 and 1
    std::memcpy(&held, element(i), sizeof held);
    value = static_cast<long double>(held);
  });
  return value;
}

void Array::set(int64_t i, long double value) {
  with_element_type(dtype_, [&]<class T>(T) {
    const T held = static_cast<T>(value);
    std::memcpy(element(i), &held, sizeof held);
  });
}

std::vector<double> Array::doubles() const {
  std::vector<double> values(count_);
  for (int64_t i = 0; i < count_; ++i) values[i] = static_cast<double>(get(i));
  return values;
}

Shape row_major(const Shape& shape) {
  Shape strides(shape.size());
  int64_t stride = 1;
  for (size_t axis = shape.size(); axis-- > 0; stride *= shape[axis]) strides[axis] = stride;
  return strides;
}

int64_t dot(const Shape& index, const Shape& strides) {
  int64_t sum = 0;
  for (size_t axis = 0; axis < index.size(); ++axis) sum += index[axis] * strides[axis];
  return sum;
}

Shape unravelled(int64_t i, const Shape& shape) {
  Shape index(shape.size());
  for (size_t axis = shape.size(); axis-- > 0; i /= shape[axis]) index[axis] = i % shape[axis];
  return index;
}

}  // namespace plugrad::conformance
