// Extents of a tensor.
#pragma once
#include <plugrad/sdk/abi.h>
#include <plugrad/runtime/api.hpp>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

namespace plugrad {

// At most 8 extents, stored inline. Also holds strides and lists of axes.
class PLUGRAD_API Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> extents) : Shape(std::span(extents.begin(), extents.size())) {}
  Shape(const std::vector<int64_t>& extents) : Shape(std::span(extents)) {}
  explicit Shape(std::span<const int64_t> extents);  // throws Error (invalid) beyond rank 8

  int rank() const { return rank_; }
  size_t size() const { return rank_; }
  bool empty() const { return rank_ == 0; }
  int64_t& operator[](size_t i) { return extents_[i]; }
  int64_t operator[](size_t i) const { return extents_[i]; }
  const int64_t* begin() const { return extents_.data(); }
  const int64_t* end() const { return extents_.data() + rank_; }
  int64_t* begin() { return extents_.data(); }
  int64_t* end() { return extents_.data() + rank_; }
  int64_t back() const { return extents_[rank_ - 1]; }
  void push_back(int64_t extent);  // throws Error (invalid) beyond rank 8
  // The product of the extents. Throws Error (invalid) if it exceeds 2^63 - 1 or an extent is negative.
  int64_t count() const;
  // "(2, 3)"
  std::string text() const;

  friend bool operator==(const Shape& a, const Shape& b) = default;

 private:
  std::array<int64_t, PLUGRAD_MAX_RANK> extents_{};  // 0 beyond the rank
  uint8_t rank_ = 0;
};

PLUGRAD_API std::ostream& operator<<(std::ostream& out, const Shape& shape);

}  // namespace plugrad
