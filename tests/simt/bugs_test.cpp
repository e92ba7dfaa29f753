// Planted bugs: the emulator detects each bug, and its message names the bug, the kernel and the thread.
#include <tests/simt/bugs.hpp>
#include <tests/simt/kernels.hpp>

#include <chrono>
#include <cmath>
#include <thread>

namespace simt::test {
namespace {

__global__ void missing_sync(float* out, const float* in) {
  __shared__ float all[64];
  all[threadIdx.x] = in[threadIdx.x];
  out[threadIdx.x] = all[63 - threadIdx.x];
}
TEST_F(Bugs, MissingSyncthreads) {
  PLUGRAD_LAUNCH(missing_sync, 1, 64, 0, nullptr, out_, in_);
  expect_fault(cudaErrorLaunchFailure, {"kernel missing_sync(float*, const float*): a race", "forward and in reverse order",
                                        "byte 0 of an allocation of 256 bytes"});
}

template <class T> __global__ void missing_sync_in_template(T* out, const T* in) {
  __shared__ T all[64];
  all[threadIdx.x] = in[threadIdx.x];
  __syncwarp();
  out[threadIdx.x] = all[63 - threadIdx.x];
}
TEST_F(Bugs, SyncwarpInPlaceOfSyncthreads) {
  PLUGRAD_LAUNCH((missing_sync_in_template<float>), 1, 64, 0, nullptr, out_, in_);
  expect_fault(cudaErrorLaunchFailure, {"kernel (missing_sync_in_template<float>)(", "a race"});
}

__global__ void uninitialised(float* out) {
  __shared__ float all[64];
  if (threadIdx.x) all[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = all[threadIdx.x];
}
template <class T> __global__ void uninitialised_dynamic(T* out) {
  PLUGRAD_DYNAMIC_SHARED(T, all);
  if (threadIdx.x) all[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = all[threadIdx.x];
}
TEST_F(Bugs, UninitialisedSharedMemoryIsPoison) {
  for (int i = 0; i < 5; ++i) {  // the result does not depend on the contents of shared memory
    PLUGRAD_LAUNCH(missing_sync, 1, 1, 0, nullptr, out_, in_);
    PLUGRAD_LAUNCH(uninitialised, 3, 64, 0, nullptr, out_);
    std::vector<float> got(64);
    ASSERT_EQ(cudaMemcpy(got.data(), out_, 256, cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_TRUE(std::isnan(got[0]));
    EXPECT_EQ(got[1], 1);
    PLUGRAD_LAUNCH((uninitialised_dynamic<float>), 3, 64, 256, nullptr, out_);
    ASSERT_EQ(cudaMemcpy(got.data(), out_, 256, cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_TRUE(std::isnan(got[0]));
    EXPECT_EQ(got[1], 1);
  }
}
TEST_F(Bugs, FreshDeviceMemoryIsPoison) {
  std::vector<float> got(64);
  ASSERT_EQ(cudaMemcpy(got.data(), out_, 256, cudaMemcpyDeviceToHost), cudaSuccess);
  for (const float x : got) EXPECT_TRUE(std::isnan(x));
}

__global__ void blocks_that_race(float* out) { *out = static_cast<float>(blockIdx.x); }
TEST_F(Bugs, BlocksThatWriteOnePlace) {
  PLUGRAD_LAUNCH(blocks_that_race, 4, 1, 0, nullptr, out_);
  expect_fault(cudaErrorLaunchFailure, {"kernel blocks_that_race", "a race", "byte 2 of an allocation"});
}

__global__ void adds_without_atomics(float* out) {
  out[0] += 1;
  out[threadIdx.x % 2] *= static_cast<float>(threadIdx.x);
}
TEST_F(Bugs, ReadModifyWriteWithoutAtomics) {
  ASSERT_EQ(cudaMemset(out_, 0, 256), cudaSuccess);
  PLUGRAD_LAUNCH(adds_without_atomics, 1, 5, 0, nullptr, out_);
  expect_fault(cudaErrorLaunchFailure, {"a race"});
}

__global__ void divergent(float* out) {
  if (threadIdx.x < 32) __syncthreads();
  else out[threadIdx.x] = 1, __syncthreads();
}
TEST_F(Bugs, DivergentSyncthreads) {
  PLUGRAD_LAUNCH(divergent, 2, 64, 0, nullptr, out_);
  expect_fault(cudaErrorLaunchFailure,
               {"kernel divergent", "block (0,0,0)",
                "divergent __syncthreads: thread (0,0,0) waits at bugs_test.cpp:", "thread (32,0,0) at bugs_test.cpp:"});
}

__global__ void barrier_in_a_branch(float* out) {
  if (threadIdx.x < 32) __syncthreads();
  *out = __shfl_sync(~0u, 1.0f, 0);
  __syncthreads();
}
TEST_F(Bugs, SyncthreadsInABranch) {
  PLUGRAD_LAUNCH(barrier_in_a_branch, 1, 64, 0, nullptr, out_);
  expect_fault(cudaErrorLaunchFailure, {"divergent __syncthreads"});
}

__global__ void shuffle_in_a_branch(float* out) {
  float value = static_cast<float>(threadIdx.x);
  if (threadIdx.x % 32 < 16) value += __shfl_down_sync(~0u, value, 1);
  __syncthreads();
  out[threadIdx.x] = value;
}
TEST_F(Bugs, ShuffleInABranch) {
  PLUGRAD_LAUNCH(shuffle_in_a_branch, 1, 64, 0, nullptr, out_);
  expect_fault(cudaErrorLaunchFailure,
               {"kernel shuffle_in_a_branch", "deadlock: thread (0,0,0) waits in __shfl_down_sync at bugs_test.cpp:",
                "for lanes 0xffff0000, which its mask 0xffffffff names and which are absent",
                "thread (16,0,0) waits in __syncthreads"});
}

__global__ void wrong_mask(float* out) { out[threadIdx.x] = __shfl_xor_sync(0xffffu, 1.0f, 1); }
TEST_F(Bugs, MaskWithoutTheCaller) {
  PLUGRAD_LAUNCH(wrong_mask, 1, 32, 0, nullptr, out_);
  expect_fault(cudaErrorLaunchFailure,
               {"kernel wrong_mask", "block (0,0,0) thread (16,0,0)", "the mask 0x0000ffff excludes the calling lane"});
}

__global__ void masks_differ(float* out) { out[threadIdx.x] = __shfl_sync(threadIdx.x < 16 ? ~0u : 0xffff0000u, 1.0f, 0); }
TEST_F(Bugs, LanesThatDisagree) {
  PLUGRAD_LAUNCH(masks_differ, 1, 32, 0, nullptr, out_);
  expect_fault(cudaErrorLaunchFailure, {"kernel masks_differ", "deadlock", "for lanes 0xffff0000"});
}

__global__ void exited_lane(float* out) {
  if (threadIdx.x == 31) return;
  out[threadIdx.x] = __shfl_xor_sync(~0u, 1.0f, 1);
}
TEST_F(Bugs, ShuffleWithALaneThatReturned) {
  PLUGRAD_LAUNCH(exited_lane, 1, 32, 0, nullptr, out_);
  expect_fault(cudaErrorLaunchFailure, {"kernel exited_lane", "__shfl_xor_sync", "absent: thread (31,0,0) has returned"});
}

__global__ void no_bound(float* out) { out[blockIdx.x * blockDim.x + threadIdx.x] = 1; }
TEST_F(Bugs, WritePastTheEnd) {
  if (kHandlersReturn) GTEST_SKIP() << "the thread sanitizer does not let a kernel leave a signal handler";
  PLUGRAD_LAUNCH(no_bound, 2, 48, 0, nullptr, out_);
  expect_fault(cudaErrorIllegalAddress, {"kernel no_bound", "block (1,0,0) thread (16,0,0)",
                                         "0 bytes past the end of an allocation of 256 bytes on device 0"});
}
TEST_F(Bugs, WriteJustPastTheEnd) {
  float* ragged = nullptr;
  ASSERT_EQ(cudaMalloc(&ragged, 4 * 63), cudaSuccess);
  PLUGRAD_LAUNCH(no_bound, 1, 64, 0, nullptr, ragged);
  expect_fault(cudaErrorIllegalAddress,
               {"kernel no_bound", "a thread has written 0 bytes past the end of an allocation of 252 bytes"});
}
__global__ void before_the_start(float* out) { out[-1 - static_cast<int>(threadIdx.x)] = 1; }
TEST_F(Bugs, WriteBeforeTheStart) {
  PLUGRAD_LAUNCH(before_the_start, 1, 1, 0, nullptr, out_);
  expect_fault(cudaErrorIllegalAddress,
               {"kernel before_the_start", "a thread has written 4 bytes before an allocation of 256 bytes"});
}
TEST_F(Bugs, ReadOfFreedMemory) {
  if (kHandlersReturn) GTEST_SKIP() << "the thread sanitizer does not let a kernel leave a signal handler";
  EXPECT_EQ(cudaFree(in_), cudaSuccess);
  PLUGRAD_LAUNCH((binary<float, Plus>), 1, 64, 0, nullptr, out_, in_, in_, size_t{64}, Plus{});
  expect_fault(cudaErrorIllegalAddress,
               {"kernel (binary<float, Plus>)", "thread (0,0,0)", "byte 0 of an allocation of 256 bytes that was freed"});
}
TEST_F(Bugs, HostMemoryThatTheDeviceCannotReach) {
  if (kHandlersReturn) GTEST_SKIP() << "the thread sanitizer does not let a kernel leave a signal handler";
  PLUGRAD_LAUNCH((binary<float, Plus>), 1, 64, 0, nullptr, out_, reinterpret_cast<const float*>(64), in_, size_t{64},
                 Plus{});
  expect_fault(cudaErrorIllegalAddress, {"touches 0x40, which is not device memory"});
}
TEST_F(Bugs, MemoryOfAnotherDevice) {
  if (kHandlersReturn) GTEST_SKIP() << "the thread sanitizer does not let a kernel leave a signal handler";
  float* other = nullptr;
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&other, 256), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  PLUGRAD_LAUNCH(no_bound, 1, 64, 0, nullptr, other);
  expect_fault(cudaErrorIllegalAddress, {"kernel no_bound", "byte 0 of an allocation of 256 bytes on device 1"});
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(cudaFree(other), cudaSuccess) << "that device is well";
  cudaSetDevice(0);
}
__global__ void past_dynamic(float* out) {
  PLUGRAD_DYNAMIC_SHARED(float, all);
  all[threadIdx.x + 32] = 1;
  out[threadIdx.x] = all[threadIdx.x + 32];
}
TEST_F(Bugs, PastTheEndOfDynamicSharedMemory) {
  if (kHandlersReturn) GTEST_SKIP() << "the thread sanitizer does not let a kernel leave a signal handler";
  PLUGRAD_LAUNCH(past_dynamic, 1, 32, 128, nullptr, out_);
  expect_fault(cudaErrorIllegalAddress,
               {"kernel past_dynamic", "thread (0,0,0)", "byte 128 of its dynamic shared memory, past its end"});
}

struct alignas(16) Four {
  float x[4];
};
__global__ void misaligned(Four* out, const float* in) { *out = *reinterpret_cast<const Four*>(in + 1); }
TEST_F(Bugs, MisalignedVector) {
  if (kHandlersReturn) GTEST_SKIP() << "the thread sanitizer does not let a kernel leave a signal handler";
  if (!kChecked) GTEST_SKIP() << "the undefined-behaviour sanitizer ends the process first";
  PLUGRAD_LAUNCH(misaligned, 1, 1, 0, nullptr, reinterpret_cast<Four*>(out_), in_);
  expect_fault(cudaErrorMisalignedAddress, {"kernel misaligned", "not aligned for its type"});
}

__global__ void trapped() {
  if (threadIdx.x == 3) __trap();
}
TEST_F(Bugs, Trap) {
  PLUGRAD_LAUNCH(trapped, 1, 32, 0, nullptr);
  expect_fault(cudaErrorAssert, {"kernel trapped", "thread (3,0,0)", "__trap at bugs_test.cpp:"});
}

TEST_F(Bugs, LaunchBeyondTheLimits) {
  const struct {
    dim3 grid, block;
    size_t shared;
    cudaError_t error;
    const char* why;
  } rows[] = {
      {1, 1025, 0, cudaErrorInvalidConfiguration, "this is (1025,1,1)"},
      {1, dim3(32, 33), 0, cudaErrorInvalidConfiguration, "this is (32,33,1)"},
      {1, dim3(1, 1, 65), 0, cudaErrorInvalidConfiguration, "this is (1,1,65)"},
      {dim3(1, 65536), 1, 0, cudaErrorInvalidConfiguration, "this is (1,65536,1)"},
      {dim3(1, 1, 65536), 1, 0, cudaErrorInvalidConfiguration, "this is (1,1,65536)"},
      {0, 32, 0, cudaErrorInvalidConfiguration, "grid (0,1,1) of blocks (32,1,1) has no threads"},
      {1, 0, 0, cudaErrorInvalidConfiguration, "has no threads"},
      {1, 32, 49153, cudaErrorInvalidValue, "49153 bytes of dynamic shared memory, of 49152 allowed"},
  };
  for (const auto& row : rows) {
    PLUGRAD_LAUNCH(trapped, row.grid, row.block, row.shared, nullptr);
    EXPECT_EQ(cudaPeekAtLastError(), row.error);
    EXPECT_EQ(cudaGetLastError(), row.error);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "a refused launch harms nothing else";
    EXPECT_NE(last_fault().find("kernel trapped(): launch refused"), std::string::npos) << last_fault();
    EXPECT_NE(last_fault().find(row.why), std::string::npos) << last_fault();
  }
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}
TEST_F(Bugs, MoreSharedMemoryWantsAnAttribute) {
  ASSERT_EQ(cudaFuncSetAttribute(uninitialised_dynamic<double>, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536),
            cudaSuccess);
  double* out = nullptr;
  ASSERT_EQ(cudaMalloc(&out, 64 * 8), cudaSuccess);
  PLUGRAD_LAUNCH((uninitialised_dynamic<double>), 1, 64, 65536, nullptr, out);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

using BugsDeathTest = Bugs;
TEST_F(BugsDeathTest, TheHostReadsDeviceMemory) {
  if (kHandlersReturn) GTEST_SKIP() << "the thread sanitizer does not let a kernel leave a signal handler";
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // the emulator closes idle memory
  EXPECT_DEATH(
      {
        const volatile float* address = out_;
        [[maybe_unused]] const float value = *address;
      },
      "the host touches byte 0 of an allocation of 256 bytes on device 0");
}

}  // namespace
}  // namespace simt::test
