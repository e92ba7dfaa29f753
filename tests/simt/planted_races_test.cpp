// Planted bugs that only several thread orders reveal: missing fences, and races beside atomic operations, in large and in
// later launches. Also bugs that the compiler's checks find.
#include <tests/simt/bugs.hpp>
#include <tests/simt/kernels.hpp>

#include <atomic>

namespace simt::test {
namespace {

template <bool kFenced> __global__ void last_block_sums(unsigned* ticket, float* partial, float* out) {
  __shared__ bool last;
  partial[blockIdx.x] = static_cast<float>(blockIdx.x) + 1;
  if (kFenced) __threadfence();
  last = atomicAdd(ticket, 1u) == gridDim.x - 1;
  if (!last) return;
  float sum = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) sum += partial[i];
  *out = sum;
  *ticket = 0;
}
TEST_F(Bugs, MissingThreadfence) {
  const Buffer<unsigned> ticket(std::vector<unsigned>{0});
  ASSERT_EQ(cudaMemset(in_, 0, 256), cudaSuccess);
  PLUGRAD_LAUNCH((last_block_sums<true>), 10, 1, 0, nullptr, ticket.get(), in_, out_);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess) << last_fault();
  ASSERT_EQ(cudaMemset(in_, 0, 256), cudaSuccess);
  PLUGRAD_LAUNCH((last_block_sums<false>), 10, 1, 0, nullptr, ticket.get(), in_, out_);
  expect_fault(cudaErrorLaunchFailure, {"kernel (last_block_sums<false>)", "a missing __threadfence", "byte"});
}

// The sum is correct in any order; the second result depends on which thread runs last.
__global__ void sums_and_races(float* out, const float* in) {
  atomicAdd(&out[0], in[threadIdx.x]);
  out[1] = in[threadIdx.x];
}
TEST_F(Bugs, RaceBesideASumOfFloats) {
  ASSERT_EQ(cudaMemset(out_, 0, 256), cudaSuccess);
  PLUGRAD_LAUNCH(sums_and_races, 1, 64, 0, nullptr, out_, in_);
  expect_fault(cudaErrorLaunchFailure, {"kernel sums_and_races", "a race", "of an allocation of 256 bytes"});
}

__global__ void sums_in_shares(float* out, const float* in) {
  atomicAdd(&out[0], in[threadIdx.x] * 0.1f);
  atomicAdd(&out[1], 1.0f);
}
TEST_F(Bugs, ASumOfFloatsInAnotherOrderIsNone) {
  ASSERT_EQ(cudaMemset(out_, 0, 256), cudaSuccess);
  PLUGRAD_LAUNCH(sums_in_shares, 1, 64, 0, nullptr, out_, in_);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(last_fault(), "");
}

__global__ void adds_beside_atomics(float* out) {
  if (threadIdx.x % 2) atomicAdd(out, 1.0f);
  else *out = *out * 2;
}
TEST_F(Bugs, PlainUpdateOfWhatOthersAddTo) {
  ASSERT_EQ(cudaMemset(out_, 0, 256), cudaSuccess);
  PLUGRAD_LAUNCH(adds_beside_atomics, 1, 16, 0, nullptr, out_);
  expect_fault(cudaErrorLaunchFailure, {"kernel adds_beside_atomics", "a race"});
}

__global__ void last_thread_wins(int* out, int stride) {
  const size_t i = global_index();
  out[i / 2 * static_cast<size_t>(stride)] = static_cast<int>(i);
}
TEST_F(Bugs, RaceOfManyThreads) {
  const Buffer<int> out(16384);
  PLUGRAD_LAUNCH(last_thread_wins, 128, 256, 0, nullptr, out.get(), 1);
  expect_fault(cudaErrorLaunchFailure, {"kernel last_thread_wins", "a race"});
}
TEST_F(Bugs, RaceThatWritesMebibytes) {
  const Buffer<int> out(512 * 4096);
  PLUGRAD_LAUNCH(last_thread_wins, 16, 64, 0, nullptr, out.get(), 4096);
  expect_fault(cudaErrorLaunchFailure, {"kernel last_thread_wins", "a race", "of an allocation of 8388608 bytes"});
}

__global__ void races_where_told(int* out, int racing) { out[racing ? 0 : threadIdx.x] = static_cast<int>(threadIdx.x); }
TEST_F(Bugs, RaceInALaterLaunchOfItsShape) {
  const Buffer<int> out(64);
  for (const int racing : {0, 0, 0, 1}) PLUGRAD_LAUNCH(races_where_told, 1, 64, 0, nullptr, out.get(), racing);
  expect_fault(cudaErrorLaunchFailure, {"kernel races_where_told", "a race"});
}

__global__ void counts(unsigned* where) { atomicAdd(where, 1u); }
TEST_F(Bugs, AtomicOperationOnHostMemory) {
  unsigned* host = nullptr;
  ASSERT_EQ(cudaMallocHost(&host, 4), cudaSuccess);
  PLUGRAD_LAUNCH(counts, 1, 32, 0, nullptr, host);
  expect_fault(cudaErrorIllegalAddress, {"kernel counts", "an atomic operation on pinned host memory"});
}

TEST_F(Bugs, SourceThatChangesUnderACopy) {
  float* host = nullptr;
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaMallocHost(&host, 256), cudaSuccess);
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  std::atomic<bool> open{false};
  const auto wait = [](void* flag) { static_cast<std::atomic<bool>*>(flag)->wait(false); };
  ASSERT_EQ(cudaLaunchHostFunc(stream, wait, &open), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(out_, host, 256, cudaMemcpyHostToDevice, stream), cudaSuccess);
  host[3] = 1;
  open = true;
  open.notify_all();
  expect_fault(cudaErrorLaunchFailure, {"the source of a copy changed after the copy was queued"});
  EXPECT_EQ(cudaStreamDestroy(stream), cudaErrorLaunchFailure);
}

__global__ void reads_doubles(double* out, const float* in) { *out = *reinterpret_cast<const double*>(in + 1); }
TEST_F(Bugs, EightBytesAtAMultipleOfFour) {
  if (!kChecked) GTEST_SKIP() << "the sanitizer's own runtime has the checks";
  PLUGRAD_LAUNCH(reads_doubles, 1, 1, 0, nullptr, reinterpret_cast<double*>(out_), in_);
  expect_fault(cudaErrorMisalignedAddress,
               {"kernel reads_doubles", "not aligned for its type", "which needs 8 bytes", "byte 4 of an allocation"});
}

__global__ void past_static(float* out) {
  __shared__ float all[64];
  all[threadIdx.x + 1] = 1;
  __syncthreads();
  out[threadIdx.x] = all[threadIdx.x];
}
TEST_F(Bugs, PastTheEndOfASharedArray) {
  if (!kChecked) GTEST_SKIP() << "the sanitizer's own runtime has the checks";
  PLUGRAD_LAUNCH(past_static, 1, 64, 0, nullptr, out_);
  expect_fault(cudaErrorIllegalAddress,
               {"kernel past_static", "thread (63,0,0)", "index 64 is outside of 'float [64]' in planted_races_test.cpp:"});
}

struct Lines {
  float at[4];
};
__global__ void past_registers(float* out, int from) {
  Lines lines{};
  for (int i = 0; i < 4; ++i) lines.at[i + from] = static_cast<float>(i);
  out[threadIdx.x] = lines.at[threadIdx.x % 4];
}
TEST_F(Bugs, PastTheEndOfAThreadsOwnArray) {
  if (!kChecked) GTEST_SKIP() << "the sanitizer's own runtime has the checks";
  PLUGRAD_LAUNCH(past_registers, 1, 4, 0, nullptr, out_, 1);
  expect_fault(cudaErrorIllegalAddress, {"kernel past_registers", "index 4 is outside of 'float [4]'"});
}

__device__ __attribute__((noinline)) void write_from(Lines& lines, int from) {
  for (int i = 0; i < 4; ++i) lines.at[i + from] = static_cast<float>(i);
}
__global__ void past_the_callers_registers(float* out, int from) {
  Lines lines{};
  write_from(lines, from);
  out[threadIdx.x] = lines.at[threadIdx.x % 4];
}
TEST_F(Bugs, PastTheEndOfTheCallersArray) {
  if (!kChecked) GTEST_SKIP() << "the sanitizer's own runtime has the checks";
  PLUGRAD_LAUNCH(past_the_callers_registers, 1, 4, 0, nullptr, out_, 1);
  expect_fault(cudaErrorIllegalAddress, {"kernel past_the_callers_registers", "index 4 is outside of 'float [4]'"});
}

}  // namespace
}  // namespace simt::test
