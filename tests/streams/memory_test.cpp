// The times at which a block may be reused, and by which stream; exhausted memory.
#include <tests/streams/rig.hpp>

#include <thread>

namespace plugrad::test {
namespace {
using Reuse = Timeline;
INSTANTIATE_TEST_SUITE_P(Blocks, Reuse, testing::Values(kSmallBytes, kLargeBytes), size_name);

TEST_P(Reuse, AtOnceOnTheSameStream) {
  hold(d, kCompute);
  Ref<Storage> a = make();
  const Storage* const block = a.get();
  fill(*a, 1);
  a = {};
  const Ref<Storage> b = make();
  EXPECT_EQ(b.get(), block);
  fill(*b, 2);
  hold(d, 0);
  EXPECT_EQ(get(*b), 2);
}

TEST_P(Reuse, OnTheOtherStreamComesAfterHome) {
  hold(d, kCompute);
  Ref<Storage> a = make();
  const Storage* const block = a.get();
  Pinned in = pin();
  set_value(in, 4);
  fill(*a, 1);
  a = {};
  Ref<Storage> b = test::make(d, bytes, true);
  if (large()) {
    EXPECT_NE(b.get(), block);  // the home has not finished with it
  }
  transfer::upload(*b, 0, in, bytes);
  hold(d, 0);
  EXPECT_EQ(get(*b), 4);
  b = {};
  streams::sync(*d.compute);
  streams::sync(*d.copies);
  const Ref<Storage> c = test::make(d, bytes, true), other = test::make(d, bytes, true);
  EXPECT_TRUE(c.get() == block || other.get() == block);
  transfer::unpin(in);
}

TEST_P(Reuse, OfWhatTheCopyStreamStillReads) {
  hold(d, kCopies);
  Ref<Storage> a = make();
  const Storage* const block = a.get();
  Pinned out = pin();
  fill(*a, 5);
  transfer::download(out, *a, 0, bytes);
  a = {};
  const Ref<Storage> b = make();
  if (large()) {
    EXPECT_NE(b.get(), block);
  }
  fill(*b, 6);
  hold(d, 0);
  transfer::settle(out);
  EXPECT_EQ(value_of(out), 5);
  EXPECT_EQ(get(*b), 6);
  transfer::unpin(out);
}

TEST_P(Reuse, OfWhatTheOtherDeviceStillReads) {
  hold(e, kCopies);
  Ref<Storage> a = make();
  const Ref<Storage> there = make(e);
  fill(*a, 5);
  transfer::between(*there, 0, *a, 0, bytes);
  a = {};
  const Ref<Storage> b = make();
  fill(*b, 6);
  hold(e, 0);
  EXPECT_EQ(get(*there), 5);
  EXPECT_EQ(get(*b), 6);
}

TEST_P(Reuse, OfWhatTheCopyStreamWrote) {
  for (int i = 0; i < 20; ++i) {
    Ref<Storage> a = test::make(d, bytes, true);
    upload(*a, static_cast<float>(i));
    Ref<Storage> sum = make();
    add(*sum, *a, *a);
    a = {};
    const Ref<Storage> b = make();
    fill(*b, -1);
    EXPECT_EQ(get(*sum), 2 * i);
  }
}

TEST_P(Reuse, ByThreadsThatHandBlocksOn) {
  std::vector<Ref<Storage>> made(200);
  std::thread maker([&] {
    for (size_t i = 0; i < made.size(); ++i) {
      made[i] = make();
      i % 2 ? upload(*made[i], static_cast<float>(i)) : fill(*made[i], static_cast<float>(i));
    }
  });
  maker.join();
  for (size_t i = 0; i < made.size(); ++i) {
    const Ref<Storage> here = make();
    add(*here, *made[i], *made[i]);
    made[i] = {};
    const Ref<Storage> next = make();
    fill(*next, -1);
    if (i % 10 == 0) {
      EXPECT_EQ(get(*here), 2 * static_cast<float>(i));
    }
  }
}

using Trim = Timeline;
constexpr uint64_t kOwnSegment = 12 << 20;  // bytes of a block with a segment of its own
INSTANTIATE_TEST_SUITE_P(Blocks, Trim, testing::Values(kOwnSegment), [](const auto&) { return "large"; });

TEST_P(Trim, GivesBackOnlyWhatNobodyUses) {
  d.allocator.trim();
  hold(d, kCompute);
  Ref<Storage> a = make();
  fill(*a, 1);
  a = {};
  const uint64_t allocated = sim().allocated(d.handle);
  EXPECT_EQ(d.allocator.trim(), 0u);
  EXPECT_EQ(sim().allocated(d.handle), allocated);
  hold(d, 0);
  streams::sync(*d.compute);
  EXPECT_EQ(d.allocator.trim(), bytes);
  EXPECT_EQ(sim().allocated(d.handle), allocated - bytes);
}

TEST_P(Reuse, RunNeitherWaitsNorAsksForMemory) {
  const Ref<Storage> a = make(), b = make();
  fill(*a, 0);
  fill(*b, 1);
  const uint64_t allocs = sim().allocs(d.handle);
  hold(d, kCompute);
  for (int i = 0; i < 250; ++i) add(*a, *a, *b);
  hold(d, 0);
  EXPECT_EQ(sim().allocs(d.handle), allocs);
  EXPECT_EQ(get(*a), 250);
}

// --- Out of memory.

constexpr uint64_t kMegabyte = 1 << 20;

TEST(OutOfMemory, TrimsAndTriesAgain) {
  const Pair full = fresh_devices({{"memory", std::to_string(4 * kMegabyte)}});
  DeviceState& d = full.first;
  Ref<Storage> a = make(d, kMegabyte), b = make(d, kMegabyte);
  fill(*a, 1);
  fill(*b, 2);
  b = {};
  streams::sync(*d.compute);
  Ref<Storage> c = make(d, 2 * kMegabyte + kMegabyte / 2);  // fits once b's block is released
  fill(*c, 3);
  EXPECT_EQ(get(*a), 1);
  EXPECT_EQ(get(*c), 3);
  const Outcome refused = outcome([&] { make(d, 2 * kMegabyte); });
  EXPECT_EQ(refused.code, Code::out_of_memory);
  EXPECT_NE(refused.what.find(d.name), std::string::npos);
  EXPECT_EQ(get(*c), 3);  // nothing else changed
  c = {};
  streams::sync(*d.compute);
  EXPECT_TRUE(outcome([&] { c = make(d, 2 * kMegabyte); }).ok);
}

TEST(OutOfMemory, ARefusedSegmentIsAskedForAgainAsLargeAsItsBlock) {
  DeviceState& d = shared_devices().first;
  d.allocator.trim();
  const uint64_t allocated = sim().allocated(d.handle);
  sim().arm(d.handle, PLUGRAD_SIM_OUT_OF_MEMORY, 1);
  Ref<Storage> b = make(d, 16 * kLargeBytes);
  fill(*b, 2);
  EXPECT_EQ(get(*b), 2);
  EXPECT_EQ(sim().allocated(d.handle), allocated + 16 * kLargeBytes);
}

TEST(OutOfMemory, AKernelWithoutRoomRunsAfterTrimming) {
  DeviceState& d = shared_devices().first;
  Ref<Storage> a = make(d, kLargeBytes), cached = make(d, kOwnSegment);
  fill(*a, 1);
  fill(*cached, 1);
  cached = {};
  streams::sync(*d.compute);
  const uint64_t number = d.compute->next, allocated = sim().allocated(d.handle);
  sim().arm(d.handle, PLUGRAD_SIM_NO_ROOM, 1);
  add(*a, *a, *a);
  EXPECT_EQ(d.compute->next, number + 1);
  EXPECT_LT(sim().allocated(d.handle), allocated);
  EXPECT_EQ(get(*a), 2);
}

}  // namespace
}  // namespace plugrad::test
