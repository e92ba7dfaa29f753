// Segments that are cut into blocks: splitting, joining, and the recorded uses of a joined block. Needs no device.
#include <core/runtime/memory/blocks.hpp>
#include <plugrad/runtime/error.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

namespace plugrad::test {
namespace {

constexpr uint64_t kPage = kBlockGranule;
const auto always = [](const Block&) { return true; };

// A pool with one segment of kPages pages.
class Pages : public testing::Test {
 protected:
  void SetUp() override {
    auto whole = std::make_unique<Block>();
    whole->bytes = segment_.bytes = kPages * kPage;
    pool_.add(segment_, *whole.release());
  }
  void TearDown() override {
    for (const Block* each = segment_.first; each;) {
      const std::unique_ptr<const Block> gone(each);
      each = each->after;
    }
  }
  Block* take(uint64_t pages) {
    Block* block = pool_.best(pages * kPage, always);
    if (!block) return nullptr;
    pool_.take(*block, pages * kPage);
    return block;
  }
  std::vector<uint64_t> free_pages() const {
    std::vector<uint64_t> pages;
    pool_.for_each_free([&](const Block& block) { pages.push_back(block.bytes / kPage); });
    std::ranges::sort(pages);
    return pages;
  }
  // The blocks are contiguous and fill the segment.
  void expect_tiled() const {
    uint64_t offset = 0;
    const Block* before = nullptr;
    for (const Block* each = segment_.first; each; before = each, each = each->after) {
      ASSERT_EQ(each->offset, offset);
      ASSERT_EQ(each->before, before);
      offset += each->bytes;
    }
    ASSERT_EQ(offset, segment_.bytes);
  }
  static constexpr uint64_t kPages = 100;
  BlockPool pool_{kPages * kPage, ~0ull};
  Segment segment_;
};

TEST(BlockBytes, WasteLessThanAPage) {
  for (const uint64_t bytes : {uint64_t(1), kPage - 1, kPage, kPage + 1, 10 * kPage, kLargestBlock - 1, kLargestBlock}) {
    EXPECT_GE(block_bytes(bytes), bytes);
    EXPECT_LT(block_bytes(bytes) - bytes, kPage);
    EXPECT_EQ(block_bytes(bytes) % kPage, 0u);
  }
  EXPECT_EQ(block_bytes(0), kPage);
}

TEST(BlockBytes, OfAbsurdSizesAreAnError) {
  for (const uint64_t bytes : {kLargestBlock + 1, UINT64_MAX / 2, UINT64_MAX - kPage + 1, UINT64_MAX - 1, UINT64_MAX})
    EXPECT_THROW(block_bytes(bytes), Error) << bytes;
}

TEST_F(Pages, ABlockIsCutToWhatIsWanted) {
  const Block* block = take(3);
  EXPECT_EQ(block->bytes, 3 * kPage);
  EXPECT_EQ(free_pages(), (std::vector<uint64_t>{97}));
  expect_tiled();
}

TEST_F(Pages, TheSmallestThatFitsIsTaken) {
  Block *a = take(10), *b = take(1), *c = take(20), *d = take(1), *e = take(11);
  for (Block* each : {c, a, e}) pool_.give(*each);
  EXPECT_EQ(take(11), e);
  EXPECT_EQ(take(9), a);
  EXPECT_EQ(take(12), c);
  EXPECT_TRUE(!b->free && !d->free);
  expect_tiled();
}

TEST_F(Pages, AmongEqualOnesTheLastDroppedIsTaken) {
  Block *a = take(10), *b = take(10), *c = take(10);
  for (Block* each : {a, c, b}) pool_.give(*each);
  EXPECT_EQ(take(10), b);
  EXPECT_EQ(take(10), c);
  EXPECT_EQ(take(10), a);
}

TEST_F(Pages, NeighboursAreJoinedAndServeALargerOne) {
  Block *a = take(30), *b = take(30), *c = take(40);
  pool_.give(*a);
  EXPECT_FALSE(pool_.loose());
  pool_.give(*b);
  EXPECT_TRUE(pool_.loose());
  EXPECT_EQ(take(50), nullptr);
  pool_.join(always);
  EXPECT_FALSE(pool_.loose());
  EXPECT_EQ(free_pages(), (std::vector<uint64_t>{60}));
  EXPECT_EQ(take(50), a);
  expect_tiled();
  EXPECT_FALSE(c->free);
}

TEST_F(Pages, AJoinedBlockIsInUseAsLongAsBothHalvesAre) {
  for (const bool first_is_later : {true, false}) {
    Block *a = take(50), *b = take(50);
    a->freed = first_is_later ? 9 : 5;
    b->freed = first_is_later ? 5 : 9;
    pool_.give(*a);
    pool_.give(*b);
    pool_.join(always);
    ASSERT_EQ(free_pages(), (std::vector<uint64_t>{100}));
    EXPECT_EQ(segment_.first->freed, 9u);
  }
}

TEST_F(Pages, BothPiecesOfASplitBlockRememberItsUse) {
  segment_.first->freed = 7;
  const Block* a = take(40);
  EXPECT_EQ(a->freed, 7u);
  EXPECT_EQ(a->after->freed, 7u);
}

TEST_F(Pages, WhatIsInUseIsJoinedLater) {
  Block *a = take(25), *b = take(25), *c = take(25), *d = take(25);
  for (Block* each : {a, b, c, d}) pool_.give(*each);
  pool_.join([&](const Block& block) { return &block != c; });
  EXPECT_EQ(free_pages(), (std::vector<uint64_t>{25, 25, 50}));
  EXPECT_TRUE(pool_.loose());
  pool_.join(always);
  EXPECT_EQ(free_pages(), (std::vector<uint64_t>{100}));
  EXPECT_FALSE(pool_.loose());
  EXPECT_TRUE(segment_.first->whole());
}

TEST_F(Pages, AnyOrderOfTakesAndGivesEndsInOneBlock) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    std::vector<Block*> held;
    for (int step = 0; step < 400; ++step) {
      if (random() % 5 < 2 && !held.empty()) {
        std::swap(held[random() % held.size()], held.back());
        pool_.give(*held.back());
        held.pop_back();
      } else if (Block* block = take(1 + random() % 12)) {
        held.push_back(block);
      }
      if (random() % 8 == 0) pool_.join([&](const Block& block) { return block.offset / kPage % 3 != seed % 3; });
      ASSERT_NO_FATAL_FAILURE(expect_tiled());
    }
    for (Block* each : held) pool_.give(*each);
    pool_.join(always);
    ASSERT_EQ(free_pages(), (std::vector<uint64_t>{kPages})) << "seed " << seed;
  }
}

TEST(FreeBlocks, OfEverySizeAreFoundAgain) {
  FreeBlocks blocks;
  std::vector<std::unique_ptr<Block>> all;
  for (uint64_t bytes = kPage; bytes < kLargestBlock; bytes = (bytes + bytes / 5 + kPage) / kPage * kPage) {
    all.push_back(std::make_unique<Block>());
    all.back()->bytes = bytes;
    blocks.insert(*all.back());
  }
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(blocks.best(all[i]->bytes, always), all[i].get());
    EXPECT_EQ(blocks.best(all[i]->bytes - kPage + 1, always), all[i].get());
    blocks.remove(*all[i]);
    EXPECT_EQ(blocks.best(all[i]->bytes, always), i + 1 < all.size() ? all[i + 1].get() : nullptr);
  }
}

}  // namespace
}  // namespace plugrad::test
