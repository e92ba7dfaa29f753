// Tests sim itself: timelines rely on sim to enforce the contract, to complete work late, and to hide its memory.
#include <tests/streams/sim_fixture.hpp>

#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>

namespace {
thread_local uint64_t allocations = 0;
}
// Counts allocations, because `run` must not allocate.
[[gnu::noinline]] void* operator new(size_t bytes) {
  ++allocations;
  if (void* p = std::malloc(bytes)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept { std::free(p); }

namespace plugrad::test {
namespace {

TEST_F(Sim, IsNoHostMemoryAndHasTwoDevices) {
  EXPECT_EQ(device.info().capabilities, static_cast<uint32_t>(PLUGRAD_ASYNC));
  uint32_t devices = 0;
  EXPECT_EQ(RawDevice::table().count(nullptr, &devices), PLUGRAD_OK);
  EXPECT_EQ(devices, 2u);
  EXPECT_EQ(RawDevice::try_open(2, {}), PLUGRAD_INVALID);
}

TEST_F(Sim, NobodyMayTouchWhatAHandlePointsTo) {
  plugrad_buffer* a = make();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(write(ends[1], a, 1), -1);
  EXPECT_EQ(errno, EFAULT);
  close(ends[0]);
  close(ends[1]);
  release({a});
}

TEST_F(Sim, FreshMemoryIsPoisonAndSoIsMemoryThatWasUsedBefore) {
  plugrad_buffer* a = make();
  EXPECT_TRUE(std::isnan(device.read(compute, a)));
  ASSERT_EQ(device.fill(compute, a, 1), PLUGRAD_OK);
  EXPECT_EQ(device.read(compute, a), 1);
  release({a});
  plugrad_buffer* b = make();
  EXPECT_EQ(a, b);
  uint32_t bits[2];
  ASSERT_EQ(RawDevice::copy(compute, RawDevice::host(bits), device.place(b), sizeof bits), PLUGRAD_OK);
  EXPECT_EQ(bits[1], 0xffffffffu);
  release({b});
}

TEST_F(Sim, ExecutesInOrderAndLate) {
  plugrad_buffer *a = make(), *b = make();
  sim().hold(device.handle(), kComputeRole);
  ASSERT_EQ(device.fill(compute, a, 1), PLUGRAD_OK);
  ASSERT_EQ(device.fill(compute, b, 2), PLUGRAD_OK);
  ASSERT_EQ(device.add(compute, a, a, b), PLUGRAD_OK);
  ASSERT_EQ(device.add(compute, b, a, a), PLUGRAD_OK);
  uint64_t done = 99;
  EXPECT_EQ(RawDevice::table().completed(compute.handle, &done), PLUGRAD_OK);
  EXPECT_EQ(done, 0u);
  sim().hold(device.handle(), 0);
  EXPECT_EQ(complete(compute, 4), PLUGRAD_OK);
  EXPECT_EQ(device.read(compute, a), 3);
  EXPECT_EQ(device.read(compute, b), 6);
  release({a, b});
}

TEST_F(Sim, TakesManySubmissionsWithoutWaitingOrAllocating) {
  plugrad_buffer *a = make(), *b = make();
  ASSERT_EQ(device.fill(compute, a, 0), PLUGRAD_OK);
  ASSERT_EQ(device.fill(compute, b, 1), PLUGRAD_OK);
  const plugrad_kernel* kernel = device.kernel(PLUGRAD_OP_ADD, {PLUGRAD_F32, PLUGRAD_F32, PLUGRAD_F32}, 0);
  ASSERT_TRUE(kernel);
  plugrad_view views[2]{};
  for (int i = 0; i < 2; ++i) {
    views[i].buffer = i ? b : a;
    views[i].count = views[i].shape[0] = RawDevice::kCount;
    views[i].dtype = PLUGRAD_F32;
    views[i].rank = 1;
    views[i].strides[0] = 1;
  }
  const plugrad_view* pointers[] = {&views[0], &views[0], &views[1]};
  plugrad_op op{sizeof op, PLUGRAD_OP_ADD, compute.number, pointers, nullptr, 1, 2, 0, nullptr, 0, 0};
  sim().hold(device.handle(), kComputeRole);
  const uint64_t before = allocations;
  int accepted = 0;
  for (int i = 0; i < 300; ++i) {
    ++op.number;
    accepted += kernel->run(kernel, compute.handle, &op) == PLUGRAD_OK;
  }
  EXPECT_EQ(allocations, before);
  EXPECT_EQ(accepted, 300);
  compute.number = op.number;
  sim().hold(device.handle(), 0);
  EXPECT_EQ(device.read(compute, a), 300);
  release({a, b});
}

TEST_F(Sim, RefusesWhatBreaksTheContract) {
  plugrad_buffer* a = make();
  ++compute.number;
  EXPECT_EQ(device.fill(compute, a, 1), PLUGRAD_INVALID);  // op 1 must come before op 2
  --compute.number;
  EXPECT_NE(RawDevice::last_report().find("next number is 1"), std::string::npos);
  EXPECT_EQ(device.fill(compute, reinterpret_cast<plugrad_buffer*>(reinterpret_cast<char*>(a) + 256), 1), PLUGRAD_INVALID);
  plugrad_buffer* small = device.alloc(kBytes - 4);
  EXPECT_EQ(device.fill(compute, small, 1), PLUGRAD_INVALID);
  EXPECT_EQ(RawDevice::copy(compute, device.place(small), device.place(a), kBytes), PLUGRAD_INVALID);
  EXPECT_EQ(wait(copies, compute, 1), PLUGRAD_INVALID);  // op 1 is not submitted yet
  EXPECT_EQ(device.fill(compute, a, 1), PLUGRAD_OK);
  EXPECT_EQ(device.read(compute, a), 1);
  release({a, small});
}

TEST_F(Sim, FindsAMissingWaitAtSubmission) {
  plugrad_buffer *a = make(), *b = make();
  ASSERT_EQ(device.fill(compute, a, 1), PLUGRAD_OK);
  ASSERT_EQ(complete(compute, 0), PLUGRAD_OK);
  sim().hold(device.handle(), kComputeRole);
  ASSERT_EQ(device.fill(compute, b, 1), PLUGRAD_OK);
  ASSERT_EQ(device.add(copies, a, b, b), PLUGRAD_OK);  // b is being written, and no wait orders the write of a
  sim().hold(device.handle(), 0);
  expect_hazard();
  EXPECT_NE(last_hazard().find("does not come after"), std::string::npos);
  release({a, b});
}

TEST_F(Sim, AcceptsWhatAWaitOrders) {
  plugrad_buffer *a = make(), *b = make(), *c = other.alloc(kBytes);
  sim().hold(device.handle(), kComputeRole);
  ASSERT_EQ(device.fill(compute, a, 1), PLUGRAD_OK);
  ASSERT_EQ(wait(copies, compute, compute.number), PLUGRAD_OK);
  ASSERT_EQ(device.add(copies, b, a, a), PLUGRAD_OK);
  ASSERT_EQ(wait(distant, copies, copies.number), PLUGRAD_OK);  // and so also after compute
  ASSERT_EQ(RawDevice::copy(distant, other.place(c), device.place(a), kBytes), PLUGRAD_OK);
  ASSERT_EQ(wait(compute, distant, distant.number), PLUGRAD_OK);
  ASSERT_EQ(device.fill(compute, a, 5), PLUGRAD_OK);
  ASSERT_EQ(device.fill(compute, b, 6), PLUGRAD_OK);  // ordered transitively
  sim().hold(device.handle(), 0);
  EXPECT_EQ(other.read(distant, c), 1);
  EXPECT_EQ(device.read(compute, b), 6);
  release({a, b});
}

TEST_F(Sim, AWriteBehindSomeOfSeveralReadersIsFound) {
  plugrad_buffer *a = make(), *b = make();
  RawStream third = device.stream();
  ASSERT_EQ(device.fill(compute, a, 1), PLUGRAD_OK);
  ASSERT_EQ(complete(compute, 1), PLUGRAD_OK);
  ASSERT_EQ(device.run(copies, PLUGRAD_OP_COPY, b, {a}), PLUGRAD_OK);
  plugrad_buffer* c = make();
  ASSERT_EQ(device.run(third, PLUGRAD_OP_COPY, c, {a}), PLUGRAD_OK);
  ASSERT_EQ(wait(compute, third, third.number), PLUGRAD_OK);
  ASSERT_EQ(device.fill(compute, a, 2), PLUGRAD_OK);  // not ordered after copies
  expect_hazard();
  ASSERT_EQ(complete(third, 1), PLUGRAD_OK);
  release({a, b, c});
}

TEST_F(Sim, FindsMemoryThatIsFreedInFlight) {
  plugrad_buffer* a = make();
  sim().hold(device.handle(), kComputeRole);
  ASSERT_EQ(device.fill(compute, a, 1), PLUGRAD_OK);
  RawDevice::table().free(device.handle(), a);
  expect_hazard();
  sim().hold(device.handle(), 0);
  RawDevice::table().free(device.handle(), reinterpret_cast<plugrad_buffer*>(reinterpret_cast<char*>(a) + 1));
  expect_hazard();
  release({});
}

TEST_F(Sim, APlainHostSourceIsTheCallersOnReturn) {
  constexpr size_t kMany = 1 << 18;  // exceeds the staging memory
  plugrad_buffer* a = device.alloc(kMany * 4);
  std::vector<uint32_t> values(kMany), back(kMany);
  for (size_t i = 0; i < kMany; ++i) values[i] = static_cast<uint32_t>(i * 2654435761u);
  const std::vector<uint32_t> kept = values;
  ASSERT_EQ(RawDevice::copy(copies, device.place(a), RawDevice::host(values.data()), kMany * 4), PLUGRAD_OK);
  std::fill(values.begin(), values.end(), 7);
  ASSERT_EQ(RawDevice::copy(copies, RawDevice::host(back.data()), device.place(a), kMany * 4), PLUGRAD_OK);
  EXPECT_EQ(back, kept);
  EXPECT_EQ(complete(copies, 2), PLUGRAD_OK);
  release({a});
}

TEST_F(Sim, PinnedMemoryGoesBothWays) {
  plugrad_buffer* a = make();
  void *in = nullptr, *out = nullptr;
  ASSERT_EQ(RawDevice::table().pin(device.handle(), kBytes, &in), PLUGRAD_OK);
  ASSERT_EQ(RawDevice::table().pin(device.handle(), kBytes, &out), PLUGRAD_OK);
  std::fill_n(static_cast<float*>(in), RawDevice::kCount, 3.0f);
  sim().hold(device.handle(), 1u << PLUGRAD_COPY_STREAM);
  ASSERT_EQ(RawDevice::copy(copies, device.place(a), device.pinned(in), kBytes), PLUGRAD_OK);
  ASSERT_EQ(RawDevice::copy(copies, device.pinned(out), device.place(a), kBytes), PLUGRAD_OK);
  EXPECT_TRUE(std::isnan(static_cast<float*>(out)[5]));
  sim().hold(device.handle(), 0);
  ASSERT_EQ(complete(copies, 2), PLUGRAD_OK);
  EXPECT_EQ(static_cast<float*>(out)[5], 3);
  RawDevice::table().unpin(device.handle(), in);
  RawDevice::table().unpin(device.handle(), out);
  release({a});
}

TEST_F(Sim, WaitSaysWhatItCovers) {
  plugrad_buffer* a = make();
  for (int i = 0; i < 6; ++i) ASSERT_EQ(device.fill(compute, a, i), PLUGRAD_OK);
  uint64_t number = 3;
  ASSERT_EQ(RawDevice::table().wait(copies.handle, compute.handle, &number), PLUGRAD_OK);
  EXPECT_EQ(number, 4u);
  number = 5;
  ASSERT_EQ(RawDevice::table().wait(copies.handle, compute.handle, &number), PLUGRAD_OK);
  EXPECT_EQ(number, 6u);
  EXPECT_EQ(device.read(copies, a), 5);
  release({a});
}

TEST_F(Sim, ManyStreamsAndThreadsAtOnce) {
  constexpr int kStreams = 8, kOps = 2000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kStreams; ++t)
    threads.emplace_back([&, t, stream = device.stream(), a = make(), b = make()]() mutable {
      device.fill(stream, a, 0);
      device.fill(stream, b, t);
      int accepted = 0;
      for (int i = 0; i < kOps; ++i) accepted += device.add(stream, a, a, b) == PLUGRAD_OK;
      EXPECT_EQ(accepted, kOps);
      EXPECT_EQ(device.read(stream, a), t * kOps);
    });
  for (std::thread& t : threads) t.join();
}

}  // namespace
}  // namespace plugrad::test
