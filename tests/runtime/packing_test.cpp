// The memory plan of a compiled step.
#include <core/steps/packing.hpp>

#include <gtest/gtest.h>
#include <algorithm>
#include <random>

namespace plugrad::steps {
namespace {

bool meet(const Interval& a, const Interval& b) {
  return a.room == b.room && a.first <= b.last && b.first <= a.last && a.offset < b.offset + b.bytes &&
         b.offset < a.offset + a.bytes;
}

// The largest number of bytes in use at any call: no plan needs less.
uint64_t most_in_use(const std::vector<Interval>& blocks, uint32_t calls) {
  uint64_t most = 0;
  for (uint32_t at = 0; at < calls; ++at) {
    uint64_t bytes = 0;
    for (const Interval& each : blocks)
      if (each.first <= at && at <= each.last) bytes += each.bytes;
    most = std::max(most, bytes);
  }
  return most;
}

TEST(Placement, SharesMemoryBetweenBlocksThatNeverMeet) {
  std::vector<Interval> blocks = {{100, 0, 1}, {200, 2, 3}, {64, 1, 2}};
  EXPECT_EQ(pack(blocks, 64), 256u + 64);
  EXPECT_EQ(blocks[0].bytes, 128u) << "rounded up to the alignment";
  EXPECT_EQ(blocks[0].offset, 0u);
  EXPECT_EQ(blocks[1].offset, 0u);
  EXPECT_EQ(blocks[2].offset, 256u);
}

TEST(Placement, UsesRoomsUntilTheyAreNeeded) {
  std::vector<Interval> blocks = {{256, 0, 4}, {256, 0, 5}, {512, 0, 1}};
  EXPECT_EQ(pack(blocks, 64, {256}, {{256, 5, 9, 0, 0}}), 512u + 256);
  EXPECT_EQ(blocks[0].room, 0u);
  EXPECT_FALSE(blocks[1].room) << "it is in use when the room is needed";
  EXPECT_FALSE(blocks[2].room) << "it does not fit";
}

TEST(Placement, LeavesFixedBlocksWhereTheyAre) {
  const std::vector<Interval> fixed = {{128, 0, 9, 0, 0}, {64, 0, 9, 256, 0}};
  std::vector<Interval> blocks = {{128, 0, 3}, {128, 3, 3}, {64, 0, 9}};
  EXPECT_EQ(pack(blocks, 64, {384}, fixed), 128u) << "the room has 128 bytes at 128, and 64 at 320";
  EXPECT_EQ(blocks[0].room, 0u);
  EXPECT_EQ(blocks[0].offset, 128u);
  EXPECT_FALSE(blocks[1].room);
  EXPECT_EQ(blocks[2].room, 0u);
  EXPECT_EQ(blocks[2].offset, 320u);
}

// A training step of a small convolutional network, in units of 3136 bytes. Placing the largest blocks first needs 4608
// units.
TEST(Placement, SearchesForAnOrderThatNeedsLess) {
  std::vector<Interval> blocks = {{2048, 0, 1},  {512, 1, 44},   {1024, 1, 45}, {512, 2, 43},  {512, 12, 41}, {1024, 13, 14},
                                  {33, 13, 13},  {256, 14, 38},  {512, 14, 39}, {256, 15, 37}, {256, 25, 27}, {256, 26, 27},
                                  {64, 27, 36},  {256, 27, 34},  {128, 28, 28}, {256, 33, 36}, {256, 36, 37}, {256, 37, 38},
                                  {256, 38, 39}, {1024, 39, 42}, {512, 40, 43}, {37, 40, 40},  {68, 41, 41},  {512, 43, 44},
                                  {512, 44, 45}, {2048, 45, 47}};
  const uint64_t least = most_in_use(blocks, 48);
  EXPECT_LE(pack(blocks, 1), least + least / 100);
}

TEST(Placement, NeverOverlaps) {
  constexpr uint32_t kCalls = 40;
  std::mt19937_64 random(1);
  const auto pick = [&](uint64_t n) { return static_cast<uint32_t>(random() % n); };
  for (int round = 0; round < 300; ++round) {
    std::vector<Interval> blocks;
    for (uint32_t i = 0; i < 1 + pick(60); ++i) {
      const uint32_t first = pick(kCalls);
      blocks.push_back({1 + pick(5000), first, first + pick(kCalls - first)});
    }
    const std::vector<uint64_t> rooms = {4096, 2000};
    const std::vector<Interval> fixed = {
        {1024, 10 + pick(20), kCalls, 0, 0}, {3072, 10 + pick(20), kCalls, 1024, 0}, {2000, pick(kCalls), kCalls, 0, 1}};
    const uint64_t size = pack(blocks, 256, rooms, fixed);
    uint64_t all = 0;
    for (size_t i = 0; i < blocks.size(); ++i) {
      const Interval& each = blocks[i];
      all += each.bytes;
      EXPECT_EQ(each.offset % 256, 0u);
      EXPECT_LE(each.offset + each.bytes, each.room ? rooms[*each.room] : size);
      for (const Interval& other : fixed) ASSERT_FALSE(meet(each, other)) << round << ": " << i;
      for (size_t j = 0; j < i; ++j) ASSERT_FALSE(meet(each, blocks[j])) << round << ": " << i << " and " << j;
    }
    EXPECT_LE(size, all);
    std::vector<Interval> alone = blocks;
    EXPECT_GE(pack(alone, 256), most_in_use(blocks, kCalls));
  }
}

}  // namespace
}  // namespace plugrad::steps
