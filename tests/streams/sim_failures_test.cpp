// Failures of sim: late failures, armed faults, and features that options remove.
#include <tests/streams/sim_fixture.hpp>

#include <vector>

namespace plugrad::test {
namespace {

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
  EXPECT_EQ(device.read(compute, a), 2);  // written before the failure
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

}  // namespace
}  // namespace plugrad::test
