#include <plugrad/io/shuffle.hpp>
#include <plugrad/runtime/error.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <vector>

namespace plugrad::test {
namespace {

TEST(ShuffledRows, IsAPermutation) {
  for (const int64_t count : {0, 1, 2, 7, 1000}) {
    std::vector<int64_t> rows = io::shuffled_rows(count, 1, 0), expected(static_cast<size_t>(count));
    std::iota(expected.begin(), expected.end(), int64_t{0});
    std::ranges::sort(rows);
    EXPECT_EQ(rows, expected);
  }
}

TEST(ShuffledRows, DependsOnSeedAndEpochAlone) {
  const std::vector<int64_t> rows = io::shuffled_rows(100, 1, 0);
  EXPECT_EQ(io::shuffled_rows(100, 1, 0), rows);
  EXPECT_NE(io::shuffled_rows(100, 2, 0), rows);
  EXPECT_NE(io::shuffled_rows(100, 1, 1), rows);
}

// Checkpoints resume in the middle of an epoch, so the order may not change between versions.
TEST(ShuffledRows, IsTheSameInEveryVersion) {
  EXPECT_EQ(io::shuffled_rows(8, 1, 0), (std::vector<int64_t>{7, 6, 0, 5, 2, 3, 1, 4}));
}

// Each of the 6 orders of 3 rows has about the same frequency (chi-squared, 5 degrees of freedom, p = 1e-6).
TEST(ShuffledRows, IsUnbiased) {
  constexpr int kShuffles = 6000;
  std::map<std::vector<int64_t>, int> counts;
  for (int epoch = 0; epoch < kShuffles; ++epoch) ++counts[io::shuffled_rows(3, 7, epoch)];
  ASSERT_EQ(counts.size(), 6u);
  double sum = 0;
  for (const auto& [order, count] : counts) sum += std::pow(count - kShuffles / 6.0, 2) / (kShuffles / 6.0);
  EXPECT_LT(sum, 36);
}

TEST(ShuffledRows, RefusesANegativeCount) { EXPECT_THROW(io::shuffled_rows(-1, 1, 0), Error); }

}  // namespace
}  // namespace plugrad::test
