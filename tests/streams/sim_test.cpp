// sim itself: that it is as strict, as late and as untouchable as the timelines rely on.
#include <tests/streams/raw_device.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>
#include <unistd.h>

namespace {
thread_local uint64_t allocations = 0;
}
// Counted, as run may not allocate.
[[gnu::noinline]] void* operator new(size_t bytes) {
  ++allocations;
  if (void* p = std::malloc(bytes)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept { std::free(p); }

namespace plugrad::test {
namespace {
constexpr uint64_t kBytes = RawDevice::kBytes;
constexpr uint32_t kComputeRole = 1u << PLUGRAD_COMPUTE_STREAM;
const plugrad_sim& sim() { return RawDevice::sim(); }
std::string last_hazard() {
  char text[512];
  sim().last_hazard(text, sizeof text);
  return text;
}

// Two devices, two streams on the first and one on the second; opened once, as a process keeps its devices.
class Sim : public testing::Test {
 protected:
  void SetUp() override { hazards_ = sim().hazards(); }
  void TearDown() override {
    sim().hold(nullptr, 0);
    sim().set_latency(nullptr, 0);
    EXPECT_EQ(sim().hazards(), hazards_) << last_hazard();
  }
  void expect_hazard() {
    EXPECT_GT(sim().hazards(), hazards_);
    hazards_ = sim().hazards();
  }
  plugrad_buffer* make() { return device.alloc(kBytes); }
  void release(std::initializer_list<plugrad_buffer*> buffers) {
    plugrad_failure failure{sizeof failure, 0, 0, 0};
    for (RawStream* s : {&compute, &copies, &distant}) RawDevice::table().sync(s->handle, &failure);
    for (plugrad_buffer* b : buffers) RawDevice::table().free(device.handle(), b);
  }
  plugrad_status sync(RawStream& stream, plugrad_failure& failure) {
    failure = {sizeof failure, 0, 0, 0};
    return RawDevice::table().sync(stream.handle, &failure);
  }

  static RawDevice& first() {
    static RawDevice& d = *new RawDevice(0);
    return d;
  }
  static RawDevice& second() {
    static RawDevice& d = *new RawDevice(1);
    return d;
  }
  RawDevice& device = first();
  RawDevice& other = second();
  RawStream compute = device.stream(), copies = device.stream(PLUGRAD_COPY_STREAM), distant = other.stream();
  uint64_t hazards_ = 0;
};

TEST_F(Sim, IsNoHostMemoryAndHasTwoDevices) {
  EXPECT_EQ(device.info().capabilities, uint32_t(PLUGRAD_ASYNC));
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
  EXPECT_EQ(device.fill(compute, a, 1), PLUGRAD_INVALID);  // 1 comes before 2
  --compute.number;
  EXPECT_NE(RawDevice::last_report().find("next number is 1"), std::string::npos);
  EXPECT_EQ(device.fill(compute, reinterpret_cast<plugrad_buffer*>(reinterpret_cast<char*>(a) + 256), 1), PLUGRAD_INVALID);
  plugrad_buffer* small = device.alloc(kBytes - 4);
  EXPECT_EQ(device.fill(compute, small, 1), PLUGRAD_INVALID);
  EXPECT_EQ(RawDevice::copy(compute, device.place(small), device.place(a), kBytes), PLUGRAD_INVALID);
  EXPECT_EQ(wait(copies, compute, 1), PLUGRAD_INVALID);  // not given yet
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
  ASSERT_EQ(device.add(copies, a, b, b), PLUGRAD_OK);  // b is being written, and so was a for all the host knows
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
  ASSERT_EQ(wait(distant, copies, copies.number), PLUGRAD_OK);  // and so behind compute
  ASSERT_EQ(RawDevice::copy(distant, other.place(c), device.place(a), kBytes), PLUGRAD_OK);
  ASSERT_EQ(wait(compute, distant, distant.number), PLUGRAD_OK);
  ASSERT_EQ(device.fill(compute, a, 5), PLUGRAD_OK);
  ASSERT_EQ(device.fill(compute, b, 6), PLUGRAD_OK);  // transitively
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
  ASSERT_EQ(device.fill(compute, a, 2), PLUGRAD_OK);  // not behind copies
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
  constexpr size_t kMany = 1 << 18;  // more than the staging memory holds
  plugrad_buffer* a = device.alloc(kMany * 4);
  std::vector<uint32_t> values(kMany), back(kMany);
  for (size_t i = 0; i < kMany; ++i) values[i] = uint32_t(i * 2654435761u);
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

TEST_F(Sim, AFailureIsNamedOnceAndCleared) {
  plugrad_buffer *a = make(), *b = make();
  ASSERT_EQ(device.fill(compute, a, 1), PLUGRAD_OK);
  sim().arm(device.handle(), PLUGRAD_SIM_INDEX_ERROR, 2);
  ASSERT_EQ(device.fill(compute, a, 2), PLUGRAD_OK);
  ASSERT_EQ(device.fill(compute, b, 3), PLUGRAD_OK);
  EXPECT_EQ(complete(compute, 3), PLUGRAD_DEVICE_ERROR);
  EXPECT_EQ(device.fill(compute, b, 4), PLUGRAD_DEVICE_ERROR);
  float value = 0;
  EXPECT_EQ(RawDevice::copy(compute, RawDevice::host(&value), device.place(a), 4), PLUGRAD_DEVICE_ERROR);
  plugrad_failure failure;
  EXPECT_EQ(sync(compute, failure), PLUGRAD_DEVICE_ERROR);
  EXPECT_EQ(failure.status, PLUGRAD_INDEX_ERROR);
  EXPECT_EQ(failure.first, 3u);
  EXPECT_EQ(failure.last, 3u);
  EXPECT_EQ(sync(compute, failure), PLUGRAD_OK);
  EXPECT_EQ(device.read(compute, a), 2);  // before the failure
  ASSERT_EQ(device.fill(compute, b, 5), PLUGRAD_OK);
  EXPECT_EQ(device.read(compute, b), 5);
  release({a, b});
}

TEST_F(Sim, ARefusedDownloadTakesNoNumber) {
  plugrad_buffer* a = make();
  sim().hold(device.handle(), kComputeRole);
  sim().arm(device.handle(), PLUGRAD_SIM_FAIL, 1);
  ASSERT_EQ(device.fill(compute, a, 1), PLUGRAD_OK);
  std::atomic<plugrad_status> status{-1};
  std::thread reader([&] {
    float value = 0;
    status = RawDevice::copy(compute, RawDevice::host(&value), device.place(a), 4);
  });
  sim().hold(device.handle(), 0);
  reader.join();
  EXPECT_EQ(status, PLUGRAD_DEVICE_ERROR);
  uint64_t done = 0;
  EXPECT_EQ(RawDevice::table().completed(compute.handle, &done), PLUGRAD_DEVICE_ERROR);
  EXPECT_EQ(done, 1u);
  plugrad_failure failure;
  EXPECT_EQ(sync(compute, failure), PLUGRAD_DEVICE_ERROR);
  EXPECT_EQ(failure.first, 1u);
  EXPECT_EQ(device.fill(compute, a, 2), PLUGRAD_OK);  // number 2
  EXPECT_EQ(device.read(compute, a), 2);
  release({a});
}

TEST_F(Sim, AnIndexOutOfRangeFailsTheStreamAndTouchesNothing) {
  plugrad_buffer *table = make(), *index = device.alloc(8), *out = device.alloc(4);
  ASSERT_EQ(device.fill(compute, table, 1), PLUGRAD_OK);
  int64_t beyond = RawDevice::kCount;
  ASSERT_EQ(RawDevice::copy(compute, device.place(index), RawDevice::host(&beyond), 8), PLUGRAD_OK);
  plugrad_view views[3]{};
  plugrad_buffer* buffers[] = {out, table, index};
  for (int i = 0; i < 3; ++i) {
    views[i].buffer = buffers[i];
    views[i].dtype = i == 2 ? PLUGRAD_I64 : PLUGRAD_F32;
    views[i].rank = 1;
    views[i].strides[0] = 1;
    views[i].count = views[i].shape[0] = i == 1 ? RawDevice::kCount : 1;
  }
  const plugrad_view* pointers[] = {&views[0], &views[1], &views[2]};
  const plugrad_axis axis{sizeof axis, 0};
  const plugrad_kernel* kernel = device.kernel(PLUGRAD_OP_GATHER, {PLUGRAD_F32, PLUGRAD_F32, PLUGRAD_I64}, 0);
  ASSERT_TRUE(kernel);
  const plugrad_op op{sizeof op, PLUGRAD_OP_GATHER, ++compute.number, pointers, &axis, 1, 2, 0, nullptr, 0, 0};
  ASSERT_EQ(kernel->run(kernel, compute.handle, &op), PLUGRAD_OK);
  plugrad_failure failure;
  EXPECT_EQ(sync(compute, failure), PLUGRAD_DEVICE_ERROR);
  EXPECT_EQ(failure.status, PLUGRAD_INDEX_ERROR);
  EXPECT_EQ(failure.first, compute.number);
  release({table, index, out});
}

TEST_F(Sim, FaultsHappenAtTheCallTheyWereArmedFor) {
  plugrad_buffer* a = make();
  sim().arm(device.handle(), PLUGRAD_SIM_REFUSE, 2);
  sim().arm(device.handle(), PLUGRAD_SIM_UNSUPPORTED, 3);
  sim().arm(device.handle(), PLUGRAD_SIM_NO_ROOM, 4);
  const uint64_t runs = sim().runs(device.handle(), PLUGRAD_OP_FILL);
  EXPECT_EQ(device.fill(compute, a, 1), PLUGRAD_OK);
  EXPECT_EQ(device.fill(compute, a, 2), PLUGRAD_INTERNAL);
  EXPECT_EQ(device.fill(compute, a, 3), PLUGRAD_UNSUPPORTED);
  EXPECT_EQ(device.fill(compute, a, 4), PLUGRAD_OUT_OF_MEMORY);
  EXPECT_EQ(compute.number, 1u);
  EXPECT_EQ(device.read(compute, a), 1);
  EXPECT_EQ(sim().runs(device.handle(), PLUGRAD_OP_FILL), runs + 1);
  sim().arm(device.handle(), PLUGRAD_SIM_OUT_OF_MEMORY, 2);
  plugrad_buffer *b = make(), *c = nullptr;
  EXPECT_EQ(RawDevice::table().alloc(device.handle(), kBytes, &c), PLUGRAD_OUT_OF_MEMORY);
  sim().arm(device.handle(), PLUGRAD_SIM_FAIL_COPY, 1);
  EXPECT_EQ(RawDevice::copy(copies, device.place(b), RawDevice::host(std::vector<char>(8).data()), 8), PLUGRAD_OK);
  plugrad_failure failure;
  EXPECT_EQ(sync(copies, failure), PLUGRAD_DEVICE_ERROR);
  EXPECT_EQ(failure.status, PLUGRAD_DEVICE_ERROR);
  release({a, b});
}

TEST_F(Sim, OptionsTakeLayoutsDtypesAndOpsAway) {
  const RawDevice poor(0, {{"without_layouts", "3"}, {"without_dtypes", "f64,i64"}, {"without_ops", "RELU,MATMUL"}});
  const std::vector<uint8_t> f32(2, PLUGRAD_F32), f64(2, PLUGRAD_F64);
  EXPECT_TRUE(poor.kernel(PLUGRAD_OP_NEG, f32, 0));
  EXPECT_FALSE(poor.kernel(PLUGRAD_OP_NEG, f32, PLUGRAD_STRIDED));
  EXPECT_TRUE(poor.kernel(PLUGRAD_OP_COPY, f32, PLUGRAD_STRIDED | PLUGRAD_BROADCAST));
  EXPECT_FALSE(poor.kernel(PLUGRAD_OP_NEG, f64, 0));
  EXPECT_FALSE(poor.kernel(PLUGRAD_OP_RELU, f32, 0));
  EXPECT_FALSE(poor.kernel(PLUGRAD_OP_MATMUL, {PLUGRAD_F32, PLUGRAD_F32, PLUGRAD_F32}, 0));
  EXPECT_TRUE(device.kernel(PLUGRAD_OP_RELU, f32, PLUGRAD_STRIDED));
  EXPECT_EQ(RawDevice::try_open(0, {{"without_dtypes", "f128"}}), PLUGRAD_INVALID);
  EXPECT_EQ(RawDevice::try_open(0, {{"without_ops", "FROBNICATE"}}), PLUGRAD_INVALID);
  EXPECT_EQ(RawDevice::try_open(0, {{"colour", "red"}}), PLUGRAD_INVALID);
  EXPECT_NE(RawDevice::last_report().find("without_layouts"), std::string::npos);
}

TEST_F(Sim, MemoryEndsWhereTheOptionSays) {
  const RawDevice small(1, {{"memory", "65536"}});
  plugrad_buffer* buffer = small.alloc(40000);
  plugrad_buffer* more = nullptr;
  EXPECT_EQ(RawDevice::table().alloc(small.handle(), 40000, &more), PLUGRAD_OUT_OF_MEMORY);
  EXPECT_EQ(sim().allocated(small.handle()), 40000u);
  RawDevice::table().free(small.handle(), buffer);
  EXPECT_EQ(RawDevice::table().alloc(small.handle(), 40000, &more), PLUGRAD_OK);
  uint64_t free_bytes = 0, total = 0;
  EXPECT_EQ(RawDevice::table().memory_info(small.handle(), &free_bytes, &total), PLUGRAD_OK);
  EXPECT_EQ(free_bytes, total - 40000);
}

TEST_F(Sim, LostIsForEverAndFreeWorks) {
  const RawDevice doomed(0);
  RawStream stream = doomed.stream();
  plugrad_buffer* a = doomed.alloc(kBytes);
  sim().arm(doomed.handle(), PLUGRAD_SIM_LOSE, 2);
  ASSERT_EQ(doomed.fill(stream, a, 1), PLUGRAD_OK);
  ASSERT_EQ(doomed.fill(stream, a, 2), PLUGRAD_OK);
  plugrad_failure failure;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(sync(stream, failure), PLUGRAD_DEVICE_LOST);
  EXPECT_EQ(doomed.fill(stream, a, 3), PLUGRAD_DEVICE_LOST);
  uint64_t done = 0;
  EXPECT_EQ(RawDevice::table().completed(stream.handle, &done), PLUGRAD_DEVICE_LOST);
  EXPECT_EQ(done, 2u);
  plugrad_buffer* b = nullptr;
  EXPECT_EQ(RawDevice::table().alloc(doomed.handle(), 8, &b), PLUGRAD_DEVICE_LOST);
  RawDevice::table().free(doomed.handle(), a);
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
