// Compares the results of plugrad/sdk/extent.hpp with a comparison of all pairs.
#include <plugrad/sdk/extent.hpp>

#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace plugrad {
namespace {

bool no_pair_conflicts(const std::vector<MemoryExtent>& extents) {
  for (const MemoryExtent& a : extents)
    for (const MemoryExtent& b : extents)
      if (a.user != b.user && a.conflicts_with(b)) return false;
  return true;
}

TEST(Extents, AreIndependentWhereNoPairOfUsersConflicts) {
  std::mt19937 random(1);
  const char buffers[2] = {};
  int independent = 0;
  for (int i = 0; i < 20000; ++i) {
    std::vector<MemoryExtent> extents;
    const uint64_t room = 1 + random() % 60;
    for (size_t k = 2 + random() % 6; k > 0; --k) {
      const uint64_t begin = random() % room;
      extents.push_back(
          {buffers + random() % 2, begin, begin + 1 + random() % 9, random() % 3 == 0, static_cast<uint32_t>(random() % 4)});
    }
    const bool expected = no_pair_conflicts(extents);
    independent += expected;
    ASSERT_EQ(are_independent(extents), expected) << i;
  }
  EXPECT_GT(independent, 2000);
  EXPECT_LT(independent, 18000);
}

TEST(Extents, OfViewsReachFromTheFirstToTheLastElement) {
  plugrad_view view{};
  view.dtype = PLUGRAD_F32;
  view.rank = 2;
  view.shape[0] = 3, view.shape[1] = 4;
  view.strides[0] = 10, view.strides[1] = -2;
  const MemoryExtent extent = extent_of(view, 1000, true, 7);
  EXPECT_EQ(extent.begin, 1000u - 3 * 2 * 4);
  EXPECT_EQ(extent.end, 1000u + 2 * 10 * 4 + 4);
  EXPECT_TRUE(extent.is_written);
  EXPECT_EQ(extent.user, 7u);
}

}  // namespace
}  // namespace plugrad
