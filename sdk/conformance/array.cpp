#include <sdk/conformance/array.hpp>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

namespace plugrad::conformance {
namespace {

template <class T> T read(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
template <class T> void write(std::byte* at, T value) { std::memcpy(at, &value, sizeof value); }

template <class T> constexpr FloatLimits limits() {
  using L = std::numeric_limits<T>;
  return {L::epsilon(), L::max(), L::min(), L::denorm_min(), L::digits, L::min_exponent - 1};
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

const char* dtype_name(uint8_t dtype) {
  constexpr const char* kNames[] = {"none", "f32", "f64", "f16", "bf16", "i32", "i64", "u8", "bool"};
  return dtype < std::size(kNames) ? kNames[dtype] : "unknown";
}

const FloatLimits& limits_of(uint8_t dtype) {
  static constexpr FloatLimits kF32 = limits<float>(), kF64 = limits<double>();
  return dtype == PLUGRAD_F32 ? kF32 : kF64;
}

int64_t wrapped(uint8_t dtype, int64_t value) {
  switch (dtype) {
    case PLUGRAD_I32: return static_cast<int32_t>(value);
    case PLUGRAD_U8: return static_cast<uint8_t>(value);
    case PLUGRAD_BOOL: return value != 0;
    default: return value;
  }
}

long double rounded(uint8_t dtype, long double value) {
  switch (dtype) {
    case PLUGRAD_F32: return static_cast<float>(value);
    case PLUGRAD_F64: return static_cast<double>(value);
    default: return static_cast<long double>(wrapped(dtype, static_cast<int64_t>(value)));
  }
}

std::string text_of(uint8_t dtype, long double value) {
  char text[64];
  if (!is_floating(dtype)) return std::to_string(static_cast<int64_t>(value));
  std::snprintf(text, sizeof text, dtype == PLUGRAD_F32 ? "%.9Lg" : "%.17Lg", value);
  return text;
}

long double Array::get(int64_t i) const {
  const std::byte* at = element(i);
  switch (dtype_) {
    case PLUGRAD_F32: return read<float>(at);
    case PLUGRAD_F64: return read<double>(at);
    case PLUGRAD_I32: return static_cast<long double>(read<int32_t>(at));
    case PLUGRAD_I64: return static_cast<long double>(read<int64_t>(at));
    default: return static_cast<long double>(read<uint8_t>(at));
  }
}

void Array::set(int64_t i, long double value) {
  std::byte* at = element(i);
  switch (dtype_) {
    case PLUGRAD_F32: return write(at, static_cast<float>(value));
    case PLUGRAD_F64: return write(at, static_cast<double>(value));
    case PLUGRAD_I32: return write(at, static_cast<int32_t>(value));
    case PLUGRAD_I64: return write(at, static_cast<int64_t>(value));
    default: return write(at, static_cast<uint8_t>(value));
  }
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
