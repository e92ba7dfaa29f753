// The order of ops, of copies in each direction, and of the streams of two devices.
#include <tests/streams/rig.hpp>

namespace plugrad::test {
namespace {
using Order = Timeline;
INSTANTIATE_TEST_SUITE_P(Blocks, Order, testing::Values(kSmallBytes, kLargeBytes), size_name);

TEST_P(Order, OneStreamInOrder) {
  sim().set_latency(d.handle, 300);
  const Ref<Storage> a = make(), b = make();
  fill(*a, 1);
  fill(*b, 2);
  add(*a, *a, *b);
  add(*a, *a, *b);
  EXPECT_EQ(get(*a), 5);
}

TEST_P(Order, AnOpIsLateAndTheHostIsNot) {
  const Ref<Storage> a = make();
  hold(d, kCompute);
  fill(*a, 1);
  EXPECT_LT(streams::poll(*d.compute), d.compute->next);
  hold(d, 0);
  EXPECT_EQ(get(*a), 1);
}

TEST_P(Order, APlainHostSourceIsTheCallersAgain) {
  const Ref<Storage> a = make(), b = make();
  std::vector<float> values(bytes / sizeof(float), 3);
  hold(d, kCopies);
  transfer::upload(*a, 0, values.data(), bytes);
  std::fill(values.begin(), values.end(), 99.0f);
  add(*b, *a, *a);
  hold(d, 0);
  EXPECT_EQ(get(*b), 6);
}

TEST_P(Order, AnUploadBeyondTheStagingMemoryArrives) {
  constexpr uint64_t kMany = 3 << 20;
  const Ref<Storage> a = test::make(d, kMany), b = test::make(d, kMany);
  upload(*a, 2.5f);
  add(*b, *a, *a);
  EXPECT_EQ(get(*b), 5);
}

TEST_P(Order, AnUploadDoesNotWaitForTheOtherStream) {
  const Ref<Storage> a = make(), b = test::make(d, bytes, true), c = make();
  hold(d, kCompute);
  fill(*a, 1);
  upload(*b, 4);
  EXPECT_EQ(get(*b), 4);  // needs only the copy stream, although compute is held
  add(*c, *a, *b);
  hold(d, 0);
  EXPECT_EQ(get(*c), 5);
}

TEST_P(Order, AnUploadIntoWhatIsBeingReadComesAfter) {
  const Ref<Storage> a = make(), b = make();
  Pinned in = pin();
  set_value(in, 8);
  hold(d, kCompute);
  fill(*a, 1);
  add(*b, *a, *a);
  transfer::upload(*a, 0, in, bytes);
  hold(d, 0);
  EXPECT_EQ(get(*b), 2);
  EXPECT_EQ(get(*a), 8);
  transfer::settle(in);
  transfer::unpin(in);
}

TEST_P(Order, PinnedBothWaysAndNobodyWaits) {
  const Ref<Storage> a = make();
  Pinned in = pin(), out = pin();
  set_value(in, 7);
  hold(d, kCompute | kCopies);
  fill(*a, 1);
  transfer::upload(*a, 0, in, bytes);
  add(*a, *a, *a);
  transfer::download(out, *a, 0, bytes);
  hold(d, 0);
  transfer::settle(out);
  transfer::settle(in);
  EXPECT_EQ(value_of(out), 14);
  transfer::unpin(in);
  transfer::unpin(out);
}

TEST_P(Order, APinnedSourceMayBeFilledAgainOnceSettled) {
  const Ref<Storage> a = make(), b = make();
  Pinned in = pin();
  for (int i = 1; i <= 5; ++i) {
    transfer::settle(in);
    set_value(in, static_cast<float>(i));
    transfer::upload(*a, 0, in, bytes);
    i == 1 ? add(*b, *a, *a) : add(*b, *b, *a);
  }
  EXPECT_EQ(get(*b), 1 + 1 + 2 + 3 + 4 + 5);
  transfer::settle(in);
  transfer::unpin(in);
}

TEST_P(Order, AWriteWaitsForTheOtherStreamsRead) {
  constexpr int kTimes = 8;
  const Ref<Storage> a = make();
  std::vector<Pinned> out;
  for (int i = 0; i < kTimes; ++i) out.push_back(pin());
  hold(d, kCopies);
  for (int i = 0; i < kTimes; ++i) {
    fill(*a, static_cast<float>(i));
    transfer::download(out[i], *a, 0, bytes);
  }
  fill(*a, 100);
  hold(d, 0);
  for (int i = 0; i < kTimes; ++i) {
    transfer::settle(out[i]);
    EXPECT_EQ(value_of(out[i]), i);
    transfer::unpin(out[i]);
  }
  EXPECT_EQ(get(*a), 100);
}

TEST_P(Order, HomeReturnsToTheFastPath) {
  const Ref<Storage> a = make(), b = make();
  upload(*a, 1);
  EXPECT_TRUE(a->owner & kForeign);
  add(*b, *a, *a);
  EXPECT_EQ(a->owner, d.compute->id);
  EXPECT_FALSE(a->foreign);
  EXPECT_EQ(get(*b), 2);
}

TEST_P(Order, OneWaitServesAllThatItCovers) {
  const Ref<Storage> a = make(), b = make(), c = make();
  upload(*a, 1);
  upload(*b, 2);
  add(*c, *b, *b);
  const uint64_t covered = d.compute->waited[d.copies->id];
  EXPECT_GE(covered, b->written);
  add(*c, *a, *b);
  EXPECT_EQ(d.compute->waited[d.copies->id], covered);
  EXPECT_EQ(get(*c), 3);
}

TEST_P(Order, FromDeviceToDevice) {
  const Ref<Storage> a = make(d), b = make(e), c = make(e), back = make(d);
  hold(d, kCompute);
  fill(*a, 3);
  transfer::between(*b, 0, *a, 0, bytes);
  add(*c, *b, *b);
  transfer::between(*back, 0, *c, 0, bytes);
  fill(*a, 50);  // must wait until the other device has read it
  add(*a, *a, *back);
  hold(d, 0);
  EXPECT_EQ(get(*a), 56);
  EXPECT_EQ(get(*b), 3);
}

TEST_P(Order, AWriteBehindTheOtherDevicesReadWaitsForIt) {
  const Ref<Storage> a = make(d), b = make(e);
  fill(*a, 1);
  hold(e, kCopies);
  transfer::between(*b, 0, *a, 0, bytes);
  fill(*a, 2);
  hold(e, 0);
  EXPECT_EQ(get(*b), 1);
  EXPECT_EQ(get(*a), 2);
}

TEST_P(Order, HalvesOfOneStorageFromBothStreams) {
  const Ref<Storage> a = make();
  std::vector<float> half(bytes / 2 / sizeof(float), 7);
  fill(*a, 1);
  transfer::upload(*a, bytes / 2, half.data(), bytes / 2);
  add(*a, *a, *a);
  std::vector<float> all(bytes / sizeof(float));
  transfer::download(all.data(), *a, 0, bytes);
  EXPECT_EQ(all.front(), 2);
  EXPECT_EQ(all.back(), 14);
}

TEST_P(Order, CompletedRisesAndReachesTheTruth) {
  const Ref<Storage> a = make();
  sim().set_latency(d.handle, 200);
  for (int i = 0; i < 50; ++i) fill(*a, static_cast<float>(i));
  uint64_t before = 0, number = 0;
  while (number < d.compute->next) {
    ASSERT_EQ(d.table.completed(d.compute->handle, &number), PLUGRAD_OK);
    ASSERT_GE(number, before);
    ASSERT_LE(number, d.compute->next);
    before = number;
  }
  EXPECT_EQ(get(*a), 49);
}

TEST_P(Order, AMissingWaitIsFoundWhateverTheTiming) {
  const Ref<Storage> a = make(), b = make();
  upload(*a, 1);
  streams::sync(*d.copies);
  add(*b, *a, *a);
  hold(d, kCopies);
  Pinned in = pin();
  set_value(in, 3);
  streams::insert_waits(false);
  transfer::upload(*a, 0, in, bytes);
  add(*b, *a, *a);
  streams::insert_waits(true);
  hold(d, 0);
  expect_hazard();
  transfer::settle(in);
  transfer::unpin(in);
}

}  // namespace
}  // namespace plugrad::test
