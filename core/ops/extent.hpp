// Numbers of shape rules while nobody knows yet whether they are sensible: extents, paddings, strides and positions.
#pragma once
#include <plugrad/runtime/error.hpp>

#include <concepts>
#include <cstdint>
#include <string>

namespace plugrad {

// An int64_t with checked sums, differences and products, also with plain integers: beyond 64 bits they throw Error
// (invalid).
class Extent {
 public:
  constexpr Extent(int64_t value) : value_(value) {}
  constexpr operator int64_t() const { return value_; }

  friend Extent operator+(Extent a, Extent b) {
    return __builtin_add_overflow(a.value_, b.value_, &a.value_) ? refused("sum", b) : a;
  }
  friend Extent operator-(Extent a, Extent b) {
    return __builtin_sub_overflow(a.value_, b.value_, &a.value_) ? refused("difference", b) : a;
  }
  friend Extent operator*(Extent a, Extent b) {
    return __builtin_mul_overflow(a.value_, b.value_, &a.value_) ? refused("product", b) : a;
  }
  friend Extent operator+(Extent a, std::integral auto b) { return a + Extent(b); }
  friend Extent operator+(std::integral auto a, Extent b) { return Extent(a) + b; }
  friend Extent operator-(Extent a, std::integral auto b) { return a - Extent(b); }
  friend Extent operator-(std::integral auto a, Extent b) { return Extent(a) - b; }
  friend Extent operator*(Extent a, std::integral auto b) { return a * Extent(b); }
  friend Extent operator*(std::integral auto a, Extent b) { return Extent(a) * b; }
  Extent operator-() const { return Extent(0) - *this; }
  Extent& operator+=(Extent b) { return *this = *this + b; }
  Extent& operator*=(Extent b) { return *this = *this * b; }

 private:
  [[noreturn]] static Extent refused(const char* what, int64_t b) {
    throw Error(Code::invalid, std::string("[shape] a ") + what + " with " + std::to_string(b) +
                                   " leaves the range of 64 bits: give smaller extents, paddings, strides or factors");
  }
  int64_t value_;
};

}  // namespace plugrad
