// Expectations for the tests of tensors and gradients, and the numbers they use.
#pragma once
#include <plugrad/plugrad.hpp>

#include <gtest/gtest.h>
#include <functional>
#include <string>
#include <vector>

namespace plugrad::test {

// The message of the exception that f throws, or "" if f throws nothing. Reads a tensor that f returns, because devices may
// report errors late.
struct Thrown {
  bool any = false;
  Code code{};
  std::string message;
};
Thrown thrown(const std::function<void()>& f);
// Succeeds if f throws an Error of this code whose message contains all these parts.
::testing::AssertionResult throws(Code code, const std::vector<std::string>& parts, const std::function<void()>& f);

// The elements, row-major, of any dtype.
std::vector<double> elements(const Tensor& x);
// Succeeds if the elements are equal within tolerance * (1 + |expected|). NaN equals NaN; an infinity equals only itself.
::testing::AssertionResult close(const std::vector<double>& actual, const std::vector<double>& expected, double tolerance);
::testing::AssertionResult close(const Tensor& actual, const Shape& shape, const std::vector<double>& expected,
                                 double tolerance = 0);
// Succeeds if the bits are equal: 0 does not equal -0, but NaN equals every NaN.
::testing::AssertionResult same_bits(const std::vector<double>& actual, const std::vector<double>& expected);

// A tensor on the device under test.
Tensor f64(const std::vector<double>& values, const Shape& shape);
Tensor f64(const std::vector<double>& values);  // rank 1
Tensor i64(const std::vector<int64_t>& values, const Shape& shape);
Tensor i64(const std::vector<int64_t>& values);
// Values of a dtype from doubles.
Tensor of(DType dtype, const std::vector<double>& values, const Shape& shape);
// 0, 1, 2, ... in a tensor of this shape.
Tensor counting(const Shape& shape, DType dtype = DType::f64);
// n values in [low, high], evenly spaced, in a scrambled order, multiples of 2^-10. phase moves all values by a fraction of
// the spacing.
std::vector<double> spread(int64_t n, double low, double high, double phase = 0.5);

// Returns the plugin's second device if it has two, else a device of another plugin, else the same device.
Device other_device();

// --- Row-major positions, for references in plain loops.

// The positions of all elements, in order.
std::vector<Shape> positions(const Shape& shape);
int64_t offset(const Shape& position, const Shape& shape);
// A position in an operand of `shape` that was broadcast: the trailing axes, 0 where the extent is 1.
Shape within(const Shape& position, const Shape& shape);

}  // namespace plugrad::test
