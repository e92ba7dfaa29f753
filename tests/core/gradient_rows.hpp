// One row for each differentiable op and way to call it.
#pragma once
#include <tests/core/expect.hpp>

#include <vector>

namespace plugrad::test {

using Inputs = std::vector<Tensor>;

struct GradientRow {
  const char* op;             // the public function
  const char* variant;        // in CamelCase
  std::vector<Shape> shapes;  // the shapes of the inputs
  double low, high;           // the bounds of the inputs' elements
  Tensor (*apply)(const Inputs& x);
  std::vector<double> kinks = {};  // no element is within kKinkDistance of a kink
  bool ties = false;               // no two elements are within kKinkDistance of each other
  bool falls_back = false;         // a device that lacks the op may fall back to host memory
};

// The step of central differences; every kink is at least 2000 steps away.
constexpr double kStep = 1e-5, kKinkDistance = 0.02;
// Casts round to f32, so both points of a difference must be exact in f32.
constexpr double kCastStep = 0x1p-8;

const std::vector<GradientRow>& gradient_rows();
// The rows of functions that are composed of other ops.
std::vector<GradientRow> composite_rows();
std::vector<GradientRow> complex_rows();
std::vector<GradientRow> algebra_rows();
std::vector<GradientRow> order_rows();
std::vector<GradientRow> rearrangement_rows();
std::vector<GradientRow> linalg_rows();
std::vector<GradientRow> spatial_rows();
std::vector<GradientRow> further_arithmetic_rows();
std::vector<GradientRow> network_rows();
std::vector<GradientRow> special_rows();
inline void PrintTo(const GradientRow& row, std::ostream* out) { *out << row.op << ' ' << row.variant; }

}  // namespace plugrad::test
