// The elements of an operand in host memory, row-major. long double represents the values of every dtype exactly.
#pragma once
#include <plugrad/sdk/backend.hpp>

#include <cfloat>
#include <cstddef>
#include <string>
#include <vector>

namespace plugrad::conformance {

static_assert(LDBL_MANT_DIG >= 64, "long double must hold every int64_t and every double");

using Shape = std::vector<int64_t>;

int64_t count_of(const Shape& shape);
std::string text_of(const Shape& shape);

// Machine epsilon, largest finite value, smallest normal and smallest denormal of a floating dtype.
struct FloatLimits {
  long double epsilon, largest, smallest_normal, smallest_denormal;
  int digits, lowest_exponent;  // bits of the significand; exponent of the smallest normal
};
const FloatLimits& limits_of(uint8_t dtype);

// Converts value to dtype: rounds to nearest even; wraps a whole number in an integer dtype.
long double rounded(uint8_t dtype, long double value);
int64_t wrapped(uint8_t dtype, int64_t value);
std::string text_of(uint8_t dtype, long double value);

class Array {
 public:
  Array() = default;
  Array(uint8_t dtype, Shape shape) : dtype_(dtype), shape_(std::move(shape)), count_(count_of(shape_)) {
    bytes_.resize(count_ * element_size(dtype), std::byte{0xFF});  // NaN in floats, so that a stray read shows
  }
  uint8_t dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t count() const { return count_; }
  long double get(int64_t i) const;
  void set(int64_t i, long double value);  // an integer must fit; a float is rounded
  int64_t integer(int64_t i) const { return static_cast<int64_t>(get(i)); }
  std::byte* element(int64_t i) { return bytes_.data() + i * element_size(dtype_); }
  const std::byte* element(int64_t i) const { return bytes_.data() + i * element_size(dtype_); }
  const std::vector<std::byte>& bytes() const { return bytes_; }
  std::vector<double> doubles() const;

 private:
  uint8_t dtype_ = 0;
  Shape shape_;
  int64_t count_ = 0;
  std::vector<std::byte> bytes_;
};

// Walks the elements of a shape in row-major order.
class Walk {
 public:
  explicit Walk(const Shape& shape) : shape_(shape), index_(shape.size(), 0) {}
  const Shape& index() const { return index_; }
  void next() {
    for (size_t axis = shape_.size(); axis-- > 0; index_[axis] = 0)
      if (++index_[axis] < shape_[axis]) return;
  }

 private:
  const Shape& shape_;
  Shape index_;
};

Shape row_major(const Shape& shape);
int64_t dot(const Shape& index, const Shape& strides);
Shape unravelled(int64_t i, const Shape& shape);

}  // namespace plugrad::conformance
