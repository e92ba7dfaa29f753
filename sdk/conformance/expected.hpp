// The allowed values of an output's element, and reference sums in double-double.
#pragma once
#include <sdk/conformance/array.hpp>

#include <optional>

namespace plugrad::conformance {

struct Expected {
  long double value = 0;
  long double bound = 0;         // 0: exact, including the sign of zero
  bool any_zero_sign = false;    // 0 and -0 are both right
  bool unspecified = false;      // any value is right: the order of evaluation decides whether it overflows
  long double exponentials = 0;  // the factor of exponentials that may be denormal
};

// The allowed values of a whole output: element by element, or bit by bit.
struct Expectation {
  std::vector<Expected> elements;
  std::optional<Array> bits;
};

// `ulps` units in the last place of value, in a floating dtype.
long double ulp_bound(uint8_t dtype, long double value, long double ulps);

// Whether `got` is within the bounds of ops.md.
bool acceptable(uint8_t dtype, long double got, const Expected& expected);

// The same for a device that may flush denormal numbers: the result itself, and up to `terms` numbers in its computation.
bool acceptable_if_flushed(uint8_t dtype, long double got, const Expected& expected, int64_t terms);

// A sum in twice the precision of double. It also keeps the sum of the terms' absolute values, and handles infinities.
class Sum {
 public:
  void add(double term);
  void add_product(double a, double b);
  long double value() const;
  long double magnitude() const { return magnitude_; }
  int64_t terms() const { return terms_; }
  // Returns the sum as an expectation in a floating dtype. The bound is eps (16 + 4 log2 n) magnitude, and n eps magnitude
  // up to n = 4096.
  Expected expected(uint8_t dtype) const;
  // The same for n - 1 additions, each rounded to the dtype, in any order: ((1 + eps / 2)^(n - 1) - 1) magnitude.
  // N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2nd edition, 2002, section 4.2.
  Expected rounded_each(uint8_t dtype) const;

 private:
  void accumulate(double term);
  Expected within(uint8_t dtype, long double bound) const;
  double high_ = 0, low_ = 0;
  long double magnitude_ = 0;
  int64_t terms_ = 0;
  bool nan_ = false, plus_ = false, minus_ = false;
};

// The dtype in which kernels compute: f32 for halves.
uint8_t summed_in(uint8_t dtype);
// Returns the allowed values of a result in summed_in(dtype), rounded to nearest even in dtype.
Expected rounded_once(uint8_t dtype, Expected expected);
// eps times the factor allowed by ops.md for a sum of n terms.
long double sum_factor(uint8_t dtype, int64_t n);

}  // namespace plugrad::conformance
