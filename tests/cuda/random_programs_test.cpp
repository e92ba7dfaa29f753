// A thousand random programs have the same values and gradients on cpu and on the device of the test. If a program differs,
// the test removes the steps that the difference does not need, and prints the rest.
#include <tests/cuda/random_kinds.hpp>

#include <plugrad/runtime/runtime.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace plugrad::test {
namespace {

constexpr uint64_t kPrograms = 100;  // per test; there are ten tests

double largest(const std::vector<std::vector<double>>& all) {
  double most = 0;
  for (const auto& some : all)
    for (const double x : some) most = std::max(most, std::abs(x));
  return most;
}

// The most by which two correct devices may differ, by rounding of functions (up to 16 ULP, sdk/ops.md) and order of sums,
// through up to 40 steps and their gradients: 1000 eps of the program's largest number.
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

// Describes how the device differs from cpu; empty if it does not.
std::string fault(const Program& program, DType dtype) {
  const Results want = run_program(program, dtype, Device("cpu")), got = run_program(program, dtype, default_device());
  const double allowed = bound(want, dtype);
  const std::string found = difference(want.values, got.values, allowed, "v");
  return found.empty() ? difference(want.gradients, got.gradients, allowed, "gradient of leaf ") : found;
}

// Returns the program without the steps that the fault does not need.
template <class Fails> Program shrunk(Program program, Fails fails) {
  for (size_t step = program.steps.size(); step-- > 0 && program.steps.size() > 1;) {
    if (is_used(program, step)) continue;
    const Program less = without_step(program, step);
    if (fails(less)) program = less;
  }
  return program;
}

class Programs : public testing::TestWithParam<uint64_t> {};

TEST_P(Programs, AgreeWithTheCpu) {
  if (!has_device("cpu")) GTEST_SKIP() << "no plugin for cpu";
  const DType dtype = GetParam() % 2 ? DType::f64 : DType::f32;
  for (uint64_t seed = GetParam() * kPrograms; seed < (GetParam() + 1) * kPrograms; ++seed) {
    const Program program = draw_program(seed);
    if (fault(program, dtype).empty()) continue;
    const Program less = shrunk(program, [&](const Program& each) { return !fault(each, dtype).empty(); });
    ADD_FAILURE() << fault(less, dtype) << "\n" << less.text() << "shrunk from " << program.steps.size() << " steps";
  }
}
INSTANTIATE_TEST_SUITE_P(Hundreds, Programs, testing::Range<uint64_t>(0, 10));

// Shows that the test can fail: results are not constant, and a small deviation is found.
TEST(Difference, IsFound) {
  const Program program = draw_program(1);
  const Results results = run_program(program, DType::f64, default_device());
  EXPECT_GT(largest(results.gradients), 0);
  std::vector<std::vector<double>> other = results.gradients;
  other[0][0] += 3 * bound(results, DType::f64);
  EXPECT_NE(difference(results.gradients, other, bound(results, DType::f64), "g"), "");
  EXPECT_EQ(difference(results.gradients, results.gradients, 0, "g"), "");
}

TEST(Shrinking, KeepsWhatTheFaultNeeds) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Program program = draw_program(seed);
    const Program less =
        shrunk(program, [&](const Program& each) { return each.steps.back().kind == program.steps.back().kind; });
    EXPECT_EQ(less.steps.back().kind, program.steps.back().kind);
    EXPECT_LE(less.steps.size(), program.steps.size());
    EXPECT_GT(largest(run_program(less, DType::f64, default_device()).values), 0) << less.text();
  }
}

TEST(Steps, AreOfEveryKind) {
  std::set<std::string> used;
  for (uint64_t seed = 0; seed < 10 * kPrograms; ++seed)
    for (const Step& step : draw_program(seed).steps) used.insert(step.kind->name);
  for (const StepKind& kind : wide_kinds()) EXPECT_TRUE(used.contains(kind.name)) << kind.name;
}

}  // namespace
}  // namespace plugrad::test
