// A thousand random programs have the same values and gradients on cpu and on the device of the test.
#include <tests/cuda/random_program.hpp>

#include <plugrad/runtime/runtime.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace plugrad::test {
namespace {

constexpr uint64_t kPrograms = 100;  // per test; there are ten

double largest(const std::vector<std::vector<double>>& all) {
  double most = 0;
  for (const auto& some : all)
    for (const double x : some) most = std::max(most, std::abs(x));
  return most;
}

// The most by which two correct devices may differ, by rounding of functions (up to 16 ULP, sdk/ops.md) and order of sums,
// through a dozen steps and their gradients: 1000 eps of the program's largest number.
double bound(const Results& results, DType dtype) {
  const double eps = dtype == DType::f64 ? std::numeric_limits<double>::epsilon()
                                         : static_cast<double>(std::numeric_limits<float>::epsilon());
  return 1000 * eps * (1 + std::max(largest(results.values), largest(results.gradients)));
}

// Describes the first difference; empty if there is none.
std::string difference(const std::vector<std::vector<double>>& want, const std::vector<std::vector<double>>& got,
                       double allowed, const char* what) {
  for (size_t i = 0; i < want.size(); ++i) {
    if (want[i].size() != got[i].size()) return std::string(what) + std::to_string(i) + " has another size";
    for (size_t k = 0; k < want[i].size(); ++k) {
      if (want[i][k] == got[i][k] || std::abs(want[i][k] - got[i][k]) <= allowed) continue;
      return std::string(what) + std::to_string(i) + "[" + std::to_string(k) + "] is " + std::to_string(got[i][k]) +
             " instead of " + std::to_string(want[i][k]) + ", " + std::to_string(allowed) + " apart at most";
    }
  }
  return {};
}

class Programs : public testing::TestWithParam<uint64_t> {};

TEST_P(Programs, AgreeWithTheCpu) {
  if (!has_device("cpu")) GTEST_SKIP() << "no plugin for cpu";
  const DType dtype = GetParam() % 2 ? DType::f64 : DType::f32;
  for (uint64_t seed = GetParam() * kPrograms; seed < (GetParam() + 1) * kPrograms; ++seed) {
    const Program program = draw_program(seed);
    const Results want = run_program(program, dtype, Device("cpu")), got = run_program(program, dtype, default_device());
    const double allowed = bound(want, dtype);
    EXPECT_EQ(difference(want.values, got.values, allowed, "v"), "") << program.text();
    EXPECT_EQ(difference(want.gradients, got.gradients, allowed, "gradient of leaf "), "") << program.text();
  }
}
INSTANTIATE_TEST_SUITE_P(Hundreds, Programs, testing::Range<uint64_t>(0, 10));

// The test can fail: results are not constant, and a small deviation is found.
TEST(Difference, IsFound) {
  const Program program = draw_program(1);
  const Results results = run_program(program, DType::f64, default_device());
  EXPECT_GT(largest(results.gradients), 0);
  std::vector<std::vector<double>> other = results.gradients;
  other[0][0] += 3 * bound(results, DType::f64);
  EXPECT_NE(difference(results.gradients, other, bound(results, DType::f64), "g"), "");
  EXPECT_EQ(difference(results.gradients, results.gradients, 0, "g"), "");
}

}  // namespace
}  // namespace plugrad::test
