// Failures that are reported late: the storages that they invalidate, the calls that throw them, and that other work
// continues.
#include <tests/streams/rig.hpp>

#include <thread>

namespace plugrad::test {
namespace {
class Failure : public Timeline {
 protected:
  // Submits an op that writes x and fails on execution; returns its number.
  uint64_t fail(Storage& x) {
    sim().arm(x.device->handle, PLUGRAD_SIM_INDEX_ERROR, 1);
    fill(x, 13);
    return x.device->compute->next;
  }
  void expect_failed(Storage& x, uint64_t number, Code code = Code::index_error) {
    const Outcome read = outcome([&] { get(x); });
    EXPECT_FALSE(read.ok);
    EXPECT_EQ(read.code, code) << read.what;
    EXPECT_EQ(read.first, number) << read.what;
  }
};
INSTANTIATE_TEST_SUITE_P(Blocks, Failure, testing::Values(kSmallBytes, kLargeBytes), size_name);

TEST_P(Failure, IsNamedAndWhatCameAfterIsInvalid) {
  const Ref<Storage> a = make(), b = make(), c = make(), independent = make();
  hold(d, kCompute);
  fill(*a, 1);
  const uint64_t k = fail(*b);
  add(*c, *b, *a);
  fill(*independent, 2);
  hold(d, 0);
  const Outcome read = outcome([&] { get(*c); });
  EXPECT_EQ(read.code, Code::index_error);
  EXPECT_EQ(read.first, k);
  EXPECT_EQ(read.last, k);
  EXPECT_NE(read.what.find("op " + std::to_string(k) + " (fill) failed: "), std::string::npos) << read.what;
  expect_failed(*b, k);
  expect_failed(*independent, k);  // not executed, because it follows k
  EXPECT_EQ(get(*a), 1);
  EXPECT_EQ(outcome([&] { add(*c, *b, *a); }).code, Code::index_error);  // operand b is invalid
  fill(*b, 9);                                                           // a new write makes b valid
  add(*c, *a, *b);
  EXPECT_EQ(get(*c), 10);
}

TEST_P(Failure, OnceKnownNothingHasAnEffectBeforeTheSync) {
  const Ref<Storage> a = make(), b = make();
  fill(*a, 1);
  const uint64_t k = fail(*b);
  await_failure(*d.compute);
  const Outcome refused = outcome([&] { fill(*a, 2); });
  EXPECT_EQ(refused.code, Code::index_error);
  EXPECT_EQ(refused.first, k);
  EXPECT_EQ(d.compute->next, k);
  EXPECT_EQ(get(*a), 1);
  fill(*a, 3);
  EXPECT_EQ(get(*a), 3);
}

TEST_P(Failure, ReachesWhatOtherStreamsAndDevicesDerived) {
  const Ref<Storage> a = make(), b = make(), there = make(e), sum = make(e), fine = make(e);
  Pinned out = pin();
  hold(d, kCompute);
  fill(*a, 1);
  fill(*fine, 4);
  const uint64_t k = fail(*b);
  transfer::between(*there, 0, *b, 0, bytes);  // on the other device's copy stream
  add(*sum, *there, *there);                   // on its compute stream
  transfer::download(out, *b, 0, bytes);
  hold(d, 0);
  expect_failed(*sum, k);
  const Outcome settled = outcome([&] { transfer::settle(out); });
  EXPECT_EQ(settled.code, Code::index_error);
  EXPECT_EQ(settled.first, k);
  expect_failed(*there, k);
  EXPECT_EQ(outcome([&] { add(*fine, *there, *there); }).first, k);
  EXPECT_EQ(get(*fine), 4);
  fill(*there, 2);
  add(*sum, *there, *fine);
  EXPECT_EQ(get(*sum), 6);
  EXPECT_EQ(get(*a), 1);
  transfer::unpin(out);
}

TEST_P(Failure, ReachesAChainAcrossBothDevicesAndBack) {
  const Ref<Storage> a = make(d), b = make(e), c = make(d), untouched = make(d);
  fill(*untouched, 3);
  streams::sync(*d.compute);
  hold(d, kCompute);
  const uint64_t k = fail(*a);
  transfer::between(*b, 0, *a, 0, bytes);
  add(*b, *b, *b);
  transfer::between(*c, 0, *b, 0, bytes);
  hold(d, 0);
  expect_failed(*c, k);
  expect_failed(*b, k);
  EXPECT_EQ(get(*untouched), 3);
}

TEST_P(Failure, LeavesWhatOtherStreamsDidBeforeAlone) {
  const Ref<Storage> a = make(), there = make(e), b = make();
  fill(*a, 2);
  transfer::between(*there, 0, *a, 0, bytes);
  EXPECT_EQ(get(*there), 2);
  const uint64_t k = fail(*b);
  expect_failed(*b, k);
  EXPECT_EQ(get(*there), 2);
  EXPECT_EQ(get(*a), 2);
}

TEST_P(Failure, ReachesManyDerivedCopiesWhoseEdgesAreMerged) {
  constexpr int kCopied = 100;
  std::vector<Ref<Storage>> x;
  std::vector<Pinned> out;
  const Ref<Storage> bad = make();
  hold(d, kCompute | kCopies);
  const uint64_t k = fail(*bad);
  for (int i = 0; i < kCopied; ++i) {
    x.push_back(make());
    out.push_back(pin());
    fill(*x[i], static_cast<float>(i));
    transfer::download(out[i], *x[i], 0, bytes);
  }
  hold(d, 0);
  int told = 0;
  for (Pinned& p : out) {
    const Outcome settled = outcome([&] { transfer::settle(p); });
    told += settled.code == Code::index_error && settled.first == k;
  }
  EXPECT_EQ(told, kCopied);
  fill(*x[0], 3);
  EXPECT_EQ(get(*x[0]), 3);
  for (Pinned& p : out) transfer::unpin(p);
}

TEST_P(Failure, TwoFailuresHaveASpanEach) {
  const Ref<Storage> a = make(), b = make(), c = make();
  const uint64_t first = fail(*a);
  expect_failed(*a, first);
  fill(*b, 1);
  const uint64_t second = fail(*c);
  expect_failed(*c, second);
  expect_failed(*a, first);
  EXPECT_LT(first, second);
  EXPECT_EQ(get(*b), 1);
}

TEST_P(Failure, IsSeenByWhoLooksAfterSomebodyElseSynced) {
  const Ref<Storage> a = make();
  const uint64_t k = fail(*a);
  std::thread other([&] { EXPECT_EQ(outcome([&] { streams::sync(*d.compute); }).code, Code::index_error); });
  other.join();
  expect_failed(*a, k);
  expect_failed(*a, k);
}

TEST_P(Failure, OfAnUploadReachesCompute) {
  const Ref<Storage> a = make(), b = make();
  hold(d, kCopies);
  sim().arm(d.handle, PLUGRAD_SIM_FAIL_COPY, 1);
  upload(*a, 1);
  const uint64_t k = d.copies->next;
  add(*b, *a, *a);
  hold(d, 0);
  expect_failed(*b, k, Code::device_error);
  expect_failed(*a, k, Code::device_error);
  upload(*a, 4);
  add(*b, *a, *a);
  EXPECT_EQ(get(*b), 8);
}

TEST_P(Failure, OfAPinnedCopyIsToldWhenItIsSettled) {
  const Ref<Storage> a = make();
  Pinned out = pin();
  fill(*a, 1);
  sim().arm(d.handle, PLUGRAD_SIM_FAIL_COPY, 1);
  transfer::download(out, *a, 0, bytes);
  EXPECT_EQ(outcome([&] { transfer::settle(out); }).code, Code::device_error);
  transfer::download(out, *a, 0, bytes);
  transfer::settle(out);
  EXPECT_EQ(value_of(out), 1);
  transfer::unpin(out);
}

// A refused copy returns its number to the stream, so settle must not wait for that number.
TEST_P(Failure, ARefusedPinnedCopyCanBeSettled) {
  const Ref<Storage> a = make(), b = make();
  Pinned in = pin(), out = pin();
  fill(*a, 1);
  fill(*b, 2);
  set_value(in, 5);
  sim().arm(d.handle, PLUGRAD_SIM_FAIL_COPY, 1);
  upload(*b, 3);
  await_failure(*d.copies);
  EXPECT_EQ(outcome([&] { transfer::upload(*a, 0, in, bytes); }).code, Code::device_error);
  transfer::settle(in);
  sim().arm(d.handle, PLUGRAD_SIM_FAIL_COPY, 1);
  upload(*b, 3);
  await_failure(*d.copies);
  EXPECT_EQ(outcome([&] { transfer::download(out, *a, 0, bytes); }).code, Code::device_error);
  transfer::settle(out);
  EXPECT_EQ(get(*a), 1);
  transfer::unpin(in);
  transfer::unpin(out);
}

TEST_P(Failure, APartialWriteDoesNotHealAnInvalidStorage) {
  const Ref<Storage> a = make();
  const uint64_t k = fail(*a);
  expect_failed(*a, k);
  EXPECT_EQ(outcome([&] { fill(*a, every_other(*a, 1), 2); }).first, k);
  fill(*a, 1);
  fill(*a, every_other(*a, 1), 1);
  EXPECT_EQ(get(*a), 1);
}

// --- Calls that the plugin refuses without an earlier failure.

TEST_P(Failure, ARefusedCallConcernsItselfAndItsNumberComesAgain) {
  const Ref<Storage> a = make(), b = make();
  fill(*a, 1);
  const uint64_t number = d.compute->next;
  sim().arm(d.handle, PLUGRAD_SIM_REFUSE, 1);
  EXPECT_EQ(outcome([&] { add(*b, *a, *a); }).code, Code::internal);
  EXPECT_EQ(d.compute->next, number);
  add(*b, *a, *a);
  EXPECT_EQ(d.compute->next, number + 1);
  EXPECT_EQ(get(*b), 2);
}

TEST_P(Failure, ARefusedCallLeavesNoUseBehind) {
  const Ref<Storage> a = make(), b = make();
  upload(*a, 1);  // the copy stream uses the storage, which is not the home
  sim().arm(d.handle, PLUGRAD_SIM_REFUSE, 1);
  EXPECT_EQ(outcome([&] { add(*b, *a, *a); }).code, Code::internal);
  upload(*a, 2);  // must not wait for the number of the refused op
  add(*b, *a, *a);
  EXPECT_EQ(get(*b), 4);
}

TEST_P(Failure, UnsupportedAtRunTakesTheNextRung) {
  const Ref<Storage> a = make(), b = make(), half = test::make(d, bytes / 2);
  fill(*a, 1);
  fill(*a, every_other(*a, 1), 5);
  fill(*b, 2);
  const uint64_t copies = d.layout_copies, runs = sim().runs(d.handle, PLUGRAD_OP_COPY),
                 adds = sim().runs(d.handle, PLUGRAD_OP_ADD);
  sim().arm(d.handle, PLUGRAD_SIM_UNSUPPORTED, 1);
  add(*half, view_of(*half), *a, every_other(*a, 1), *b, every_other(*b, 0));
  EXPECT_EQ(get(*half), 7);
  EXPECT_EQ(d.layout_copies, copies + 2);
  EXPECT_EQ(sim().runs(d.handle, PLUGRAD_OP_COPY), runs + 2);
  EXPECT_EQ(sim().runs(d.handle, PLUGRAD_OP_ADD), adds + 1);
}

TEST_P(Failure, UnsupportedOnTheLastRungNamesOpAndDevice) {
  const Ref<Storage> a = make(), b = make();
  fill(*a, 1);
  fill(*b, 3);
  sim().arm(d.handle, PLUGRAD_SIM_UNSUPPORTED, 1);
  const Outcome refused = outcome([&] { add(*b, *a, *a); });
  EXPECT_EQ(refused.code, Code::unsupported);
  EXPECT_NE(refused.what.find("add"), std::string::npos) << refused.what;
  EXPECT_NE(refused.what.find(d.name), std::string::npos) << refused.what;
  EXPECT_EQ(get(*b), 3);
}

// --- Lost devices.

TEST(Lost, IsForEverAndSparesTheOtherDevice) {
  const Pair pair = fresh_devices();
  DeviceState &d = pair.first, &e = pair.second;
  const Ref<Storage> taken = make(d, kLargeBytes), good = make(d, kLargeBytes), late = make(d, kLargeBytes);
  Ref<Storage> x = make(e, kLargeBytes), y = make(e, kLargeBytes);
  fill(*x, 3);
  fill(*good, 8);
  transfer::between(*taken, 0, *x, 0, kLargeBytes);
  EXPECT_EQ(get(*taken), 3);
  sim().hold(e.handle, kCompute);
  sim().arm(e.handle, PLUGRAD_SIM_LOSE, 1);
  add(*y, *x, *x);
  transfer::between(*late, 0, *y, 0, kLargeBytes);
  sim().hold(e.handle, 0);
  EXPECT_EQ(outcome([&] { get(*y); }).code, Code::device_lost);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(outcome([&] { fill(*x, 1); }).code, Code::device_lost);
    EXPECT_EQ(outcome([&] { get(*x); }).code, Code::device_lost);
    EXPECT_EQ(outcome([&] { upload(*x, 1); }).code, Code::device_lost);
    EXPECT_EQ(outcome([&] { streams::sync(*e.compute); }).code, Code::device_lost);
    EXPECT_EQ(outcome([&] { make(e, kLargeBytes); }).code, Code::device_lost);
  }
  EXPECT_EQ(outcome([&] { get(*late); }).code, Code::device_lost);  // depends on lost data
  EXPECT_EQ(get(*taken), 3);                                        // copied before the loss
  EXPECT_EQ(get(*good), 8);
  add(*taken, *taken, *good);
  EXPECT_EQ(get(*taken), 11);
}

TEST(Lost, MemoryIsStillGivenBack) {
  const Pair pair = fresh_devices();
  DeviceState& d = pair.first;
  const uint64_t hazards = sim().hazards(), bytes = 12 << 20;  // each needs a segment of its own
  Ref<Storage> a = make(d, bytes);
  sim().arm(d.handle, PLUGRAD_SIM_LOSE, 2);
  fill(*a, 1);
  fill(*a, 2);
  EXPECT_EQ(outcome([&] { streams::sync(*d.compute); }).code, Code::device_lost);
  EXPECT_EQ(sim().allocated(d.handle), bytes);
  a = {};
  d.allocator.trim();
  EXPECT_EQ(sim().allocated(d.handle), 0u);
  EXPECT_EQ(sim().hazards(), hazards) << last_hazard();
}

TEST(Lost, ADownloadThatWaitsIsTold) {
  const Pair pair = fresh_devices();
  DeviceState& d = pair.first;
  const Ref<Storage> a = make(d, kLargeBytes);
  sim().hold(d.handle, kCompute);
  sim().arm(d.handle, PLUGRAD_SIM_LOSE, 1);
  fill(*a, 1);
  std::thread reader([&] { EXPECT_EQ(outcome([&] { get(*a); }).code, Code::device_lost); });
  while (!d.downloads) std::this_thread::yield();
  sim().hold(d.handle, 0);
  reader.join();
}

}  // namespace
}  // namespace plugrad::test
