// What an element of an output may be, and sums in double-double to compare with.
#pragma once
#include <sdk/conformance/array.hpp>

#include <optional>

namespace plugrad::conformance {

struct Expected {
  long double value = 0;
  long double bound = 0;       // 0: to the last bit, sign of zero included
  bool any_zero_sign = false;  // 0 and -0 are both right
  bool unspecified = false;    // anything is: the order of evaluation decides whether it overflows
};

// What an output as a whole may be: element by element, or bit by bit.
struct Expectation {
  std::vector<Expected> elements;
  std::optional<Array> bits;
};

// `ulps` units in the last place of value, in a floating dtype.
long double ulp_bound(uint8_t dtype, long double value, long double ulps);

// Whether got is within what ops.md allows.
bool acceptable(uint8_t dtype, long double got, const Expected& expected);

// A sum in twice the precision of double, with the sum of the terms' absolute values and what infinities make of it.
class Sum {
 public:
  void add(double term);
  void add_product(double a, double b);
  long double value() const;
  long double magnitude() const { return magnitude_; }
  int64_t terms() const { return terms_; }
  // The sum as an expectation in a floating dtype: eps (16 + 4 log2 n) magnitude, and n eps up to n = 4096.
  Expected expected(uint8_t dtype) const;

 private:
  void accumulate(double term);
  double high_ = 0, low_ = 0;
  long double magnitude_ = 0;
  int64_t terms_ = 0;
  bool nan_ = false, plus_ = false, minus_ = false;
};

// eps times what ops.md allows a sum of n terms.
long double sum_factor(uint8_t dtype, int64_t n);

}  // namespace plugrad::conformance
