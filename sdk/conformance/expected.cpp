#include <sdk/conformance/expected.hpp>

#include <cmath>
#include <limits>

namespace plugrad::conformance {

long double ulp_bound(uint8_t dtype, long double value, long double ulps) {
  if (!std::isfinite(value)) return 0;
  const FloatLimits& limits = limits_of(dtype);
  int exponent = 0;
  std::frexp(value, &exponent);  // value = m 2^exponent, 0.5 <= m < 1
  const int lowest = limits.lowest_exponent;
  const int lead = value == 0 ? lowest : std::max(exponent - 1, lowest);
  return ulps * std::ldexp(1.0L, lead - (limits.digits - 1));
}

bool acceptable(uint8_t dtype, long double got, const Expected& expected) {
  const long double value = expected.value;
  if (expected.unspecified) return true;
  if (!is_floating(dtype)) return got == value;
  if (std::isnan(value)) return std::isnan(got);
  if (std::isnan(got)) return false;
  if (expected.bound == 0) {
    const bool sign_matters = value == 0 && !expected.any_zero_sign;
    return got == value && (!sign_matters || std::signbit(got) == std::signbit(value));
  }
  if (std::isinf(value)) return got == value;
  const FloatLimits& limits = limits_of(dtype);
  if (std::isinf(got)) {  // values at least half a unit above the largest finite number round to infinity
    const long double overflow = limits.largest * (1 + limits.epsilon / 4);
    return std::signbit(got) == std::signbit(value) && std::fabs(value) + expected.bound >= overflow;
  }
  const bool denormal = std::fabs(value) < limits.smallest_normal || std::fabs(got) < limits.smallest_normal;
  return std::fabs(got - value) <= expected.bound + (denormal ? 4 * limits_of(summed_in(dtype)).smallest_denormal : 0);
}

bool acceptable_if_flushed(uint8_t dtype, long double got, const Expected& expected, int64_t terms) {
  const long double normal = limits_of(dtype).smallest_normal;
  if (got == 0 && std::fabs(expected.value) - expected.bound <= normal) return true;
  if (std::isinf(expected.exponentials)) return true;  // an infinite factor times an exponential that may be 0
  Expected wider = expected;
  if (expected.bound > 0) wider.bound += (static_cast<long double>(terms) + expected.exponentials) * normal;
  return acceptable(dtype, got, wider);
}

void Sum::accumulate(double term) {
  const double sum = high_ + term;  // two-sum: Knuth, TAOCP 2, 4.2.2
  const double back = sum - high_;
  low_ += (high_ - (sum - back)) + (term - back);
  high_ = sum;
}

void Sum::add(double term) {
  ++terms_;
  if (std::isnan(term)) nan_ = true;
  else if (std::isinf(term)) (term > 0 ? plus_ : minus_) = true;
  else {
    accumulate(term);
    magnitude_ += std::fabs(static_cast<long double>(term));
  }
}

void Sum::add_product(double a, double b) {
  if (!std::isfinite(a) || !std::isfinite(b)) return add(a * b);
  ++terms_;
  magnitude_ += std::fabs(static_cast<long double>(a) * b);
  const double product = a * b;
  if (!std::isfinite(product)) return;  // magnitude records the overflow
  accumulate(product);
  accumulate(std::fma(a, b, -product));
}

long double Sum::value() const {
  if (nan_ || (plus_ && minus_)) return std::numeric_limits<long double>::quiet_NaN();
  if (plus_ || minus_) return plus_ ? HUGE_VALL : -HUGE_VALL;
  return static_cast<long double>(high_) + low_;
}

uint8_t summed_in(uint8_t dtype) { return dtype_info(dtype)->accumulator; }

Expected rounded_once(uint8_t dtype, Expected expected) {
  if (expected.bound == 0) expected.value = rounded(dtype, expected.value);
  else expected.bound += ulp_bound(dtype, std::fabs(expected.value) + expected.bound, 0.5);
  return expected;
}

long double sum_factor(uint8_t dtype, int64_t n) {
  long double factor = 16 + 4 * std::log2(static_cast<long double>(n));
  if (n <= 4096) factor = std::max<long double>(factor, n);
  return factor * limits_of(dtype).epsilon;
}

Expected Sum::expected(uint8_t dtype) const {
  const long double underflow = 4 * terms_ * limits_of(dtype).smallest_denormal;  // of products; sums do not underflow
  return within(dtype, sum_factor(dtype, terms_) * magnitude_ + underflow);
}

Expected Sum::rounded_each(uint8_t dtype) const {
  return within(dtype, (std::pow(1 + limits_of(dtype).epsilon / 2, terms_ - 1) - 1) * magnitude_);
}

Expected Sum::within(uint8_t dtype, long double bound) const {
  Expected expected{value(), bound, true, false};
  // A partial sum may overflow in one order but not in another.
  expected.unspecified = magnitude_ >= limits_of(dtype).largest / 2 && !nan_;
  return expected;
}

}  // namespace plugrad::conformance
