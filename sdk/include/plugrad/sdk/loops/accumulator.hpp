// Sums with more precision than their operands have.
#pragma once
#include <cmath>
#include <cstdint>
#include <type_traits>

#pragma GCC visibility push(hidden)
namespace plugrad::loops {

// Sums in double: for a billion f32 terms the error stays within one f32 rounding.
template <class T> class Accumulator {
 public:
  using Term = double;
  void add(double term) { sum_ += term; }
  double total() const { return sum_; }

 private:
  double sum_ = 0;
};

// Neumaier, "Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen", 1974: a second sum collects the
// rounding errors of the additions, so the error does not grow with the number of terms.
template <> class Accumulator<double> {
 public:
  using Term = double;
  void add(double term) {
    const double sum = sum_ + term;
    lost_ += std::fabs(sum_) >= std::fabs(term) ? (sum_ - sum) + term : (term - sum) + sum_;
    sum_ = sum;
  }
  double total() const { return std::isfinite(sum_) ? sum_ + lost_ : sum_; }  // beside an infinity, lost_ is NaN

 private:
  double sum_ = 0, lost_ = 0;
};

// Integer sums wrap.
template <> class Accumulator<int64_t> {
 public:
  using Term = int64_t;
  void add(int64_t term) { sum_ += static_cast<uint64_t>(term); }
  int64_t total() const { return static_cast<int64_t>(sum_); }

 private:
  uint64_t sum_ = 0;
};

}  // namespace plugrad::loops
#pragma GCC visibility pop
