// Correct kernels give correct results in every order.
#include <simt/control.hpp>
#include <tests/simt/kernels.hpp>
#include <tests/simt/memory_of.hpp>

#include <cmath>

namespace simt::test {
namespace {

class Kernels : public testing::Test {
 protected:
  void TearDown() override {
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(last_fault(), "");
  }
};

TEST_F(Kernels, AddElementByElement) {
  for (const size_t n : {1u, 31u, 1000u, 100000u}) {
    const Buffer<float> a(counted<float>(n)), b(counted<float>(n, 3, 2)), out(n);
    PLUGRAD_LAUNCH((binary<float, Plus>), 8, 128, 0, nullptr, out.get(), a.get(), b.get(), n, Plus{});
    const std::vector<float> got = out.values();
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(got[i], static_cast<float>(i) + 3 + 2 * static_cast<float>(i));
  }
}

TEST_F(Kernels, ReduceInTwoStages) {
  const size_t n = 10007;
  const Buffer<double> in(counted<double>(n)), partial(7), out(1);
  PLUGRAD_LAUNCH((reduce<double, Plus>), 7, 96, 0, nullptr, partial.get(), in.get(), n, 0.0, Plus{});
  PLUGRAD_LAUNCH((reduce<double, Plus>), 1, 96, 0, nullptr, out.get(), partial.get(), size_t{7}, 0.0, Plus{});
  EXPECT_EQ(out.values()[0], static_cast<double>(n) * static_cast<double>(n - 1) / 2);
  PLUGRAD_LAUNCH((reduce<double, Larger>), 1, 1024, 0, nullptr, out.get(), in.get(), n, -1.0, Larger{});
  EXPECT_EQ(out.values()[0], static_cast<double>(n - 1));
}

TEST_F(Kernels, MultiplyTileByTile) {
  const int m = 33, n = 40, k = 50;
  const std::vector<float> a = counted<float>(m * k, -1, 0.01), b = counted<float>(k * n, 2, -0.02);
  const Buffer<float> left(a), right(b), out(m * n);
  PLUGRAD_LAUNCH((matmul<float, 16>), dim3((n + 15) / 16, (m + 15) / 16), dim3(16, 16), 0, nullptr, out.get(), left.get(),
                 right.get(), m, n, k);
  const std::vector<float> got = out.values();
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      double want = 0;
      for (int x = 0; x < k; ++x)
        want +=
            static_cast<double>(a[static_cast<size_t>(i * k + x)]) * static_cast<double>(b[static_cast<size_t>(x * n + j)]);
      ASSERT_NEAR(got[static_cast<size_t>(i * n + j)], want, 1e-6 * std::abs(want) + 1e-4);
    }
}

TEST_F(Kernels, SoftmaxInDynamicSharedMemory) {
  const int rows = 5, columns = 100;
  const Buffer<float> in(counted<float>(rows * columns, 0, 0.03)), out(rows * columns);
  PLUGRAD_LAUNCH(softmax, rows, 64, static_cast<size_t>(columns) * sizeof(float), nullptr, out.get(), in.get(), columns);
  const std::vector<float> got = out.values();
  double whole = 0;
  for (int j = 0; j < columns; ++j) whole += std::exp(0.03 * j);
  for (int i = 0; i < rows * columns; ++i)
    ASSERT_NEAR(got[static_cast<size_t>(i)], std::exp(0.03 * (i % columns)) / whole, 1e-6);
}

template <class T> void scatter() {
  const size_t n = 5000;
  std::vector<int> index(n);
  for (size_t i = 0; i < n; ++i) index[i] = static_cast<int>(i % 10);
  const Buffer<int> where(index);
  const Buffer<T> values(std::vector<T>(n, T(2))), out(std::vector<T>(10, T(1)));
  PLUGRAD_LAUNCH(scatter_add<T>, 4, 256, 0, nullptr, out.get(), where.get(), values.get(), n);
  EXPECT_EQ(out.values(), std::vector<T>(10, T(1001)));
}
TEST_F(Kernels, AddAtomically) {
  scatter<int>();
  scatter<unsigned>();
  scatter<unsigned long long>();
  scatter<float>();
  scatter<double>();
}

struct Seen {
  uint3 thread, block;
};
__global__ void where_am_i(Seen* out) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  __syncthreads();  // after a switch of threads, the indices are still the thread's own
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] = {threadIdx, blockIdx};
}
TEST_F(Kernels, KnowTheirPlaceInThreeDimensions) {
  const dim3 grid(2, 3, 4), block(5, 2, 3);
  const Buffer<Seen> out(24 * 30);
  PLUGRAD_LAUNCH(where_am_i, grid, block, 0, nullptr, out.get());
  const std::vector<Seen> seen = out.values();
  for (unsigned i = 0; i < seen.size(); ++i) {
    const unsigned b = i / 30, t = i % 30;
    ASSERT_EQ(seen[i].thread.x, t % 5);
    ASSERT_EQ(seen[i].thread.y, t / 5 % 2);
    ASSERT_EQ(seen[i].thread.z, t / 10);
    ASSERT_EQ(seen[i].block.x, b % 2);
    ASSERT_EQ(seen[i].block.y, b / 2 % 3);
    ASSERT_EQ(seen[i].block.z, b / 6);
  }
}

__global__ void vote(unsigned* out) {
  const unsigned lane = threadIdx.x % 32;
  unsigned* row = out + threadIdx.x * 12;
  row[0] = __ballot_sync(~0u, lane % 3 == 0);
  row[1] = static_cast<unsigned>(__any_sync(~0u, lane == 31));
  row[2] = static_cast<unsigned>(__all_sync(~0u, lane < 32));
  row[3] = static_cast<unsigned>(__all_sync(~0u, lane != 7));
  row[4] = __shfl_sync(~0u, lane * 10, 5);
  row[5] = __shfl_up_sync(~0u, lane, 3);
  row[6] = __shfl_xor_sync(~0u, lane, 6);
  row[7] = __shfl_down_sync(~0u, lane, 1, 8);
  row[8] = __match_any_sync(~0u, lane / 8);
  row[9] = static_cast<unsigned>(__syncthreads_count(threadIdx.x < 40));
  row[10] = static_cast<unsigned>(__syncthreads_or(threadIdx.x == 63)) * 2 +
            static_cast<unsigned>(__syncthreads_and(threadIdx.x < 63));
  if (lane < 16) row[11] = __shfl_sync(0xffffu, lane, 15);  // half a warp, according to its mask
  else row[11] = __shfl_sync(0xffff0000u, lane, 16);
}
TEST_F(Kernels, VoteAndShuffle) {
  const Buffer<unsigned> out(64 * 12);
  PLUGRAD_LAUNCH(vote, 1, 64, 0, nullptr, out.get());
  const std::vector<unsigned> got = out.values();
  for (unsigned i = 0; i < 64; ++i) {
    const unsigned lane = i % 32, *row = &got[i * 12];
    EXPECT_EQ(row[0], 0x49249249u);
    EXPECT_EQ(row[1], 1u);
    EXPECT_EQ(row[2], 1u);
    EXPECT_EQ(row[3], 0u);
    EXPECT_EQ(row[4], 50u);
    EXPECT_EQ(row[5], lane < 3 ? lane : lane - 3);
    EXPECT_EQ(row[6], lane ^ 6);
    EXPECT_EQ(row[7], lane % 8 == 7 ? lane : lane + 1);
    EXPECT_EQ(row[8], 0xffu << lane / 8 * 8);
    EXPECT_EQ(row[9], 40u);
    EXPECT_EQ(row[10], 2u);
    EXPECT_EQ(row[11], lane < 16 ? 15u : 16u);
  }
}

__global__ void atomics(int* out, unsigned long long* wide) {
  atomicMax(&out[0], static_cast<int>(threadIdx.x));
  atomicMin(&out[1], -static_cast<int>(threadIdx.x));
  atomicOr(&out[2], 1 << (threadIdx.x % 32));
  atomicAdd(&out[3], 1);
  int seen = out[4], expected = seen + 1;
  while (seen != expected) {
    expected = seen;
    seen = atomicCAS(&out[4], expected, expected + 2);
  }
  atomicMin(wide, static_cast<unsigned long long>(threadIdx.x + 5));
}
TEST_F(Kernels, TakeMinimaAndCompareAndSwap) {
  const Buffer<int> out(std::vector<int>(5, 0));
  const Buffer<unsigned long long> wide(std::vector<unsigned long long>{~0ull});
  PLUGRAD_LAUNCH(atomics, 1, 100, 0, nullptr, out.get(), wide.get());
  EXPECT_EQ(out.values(), (std::vector<int>{99, -99, -1, 100, 200}));
  EXPECT_EQ(wide.values()[0], 5u);
}

__global__ void turns(double* out) {
  const double x = static_cast<int>(threadIdx.x) - 8;
  sincospi(x / 2, &out[2 * threadIdx.x], &out[2 * threadIdx.x + 1]);
}
TEST_F(Kernels, SineOfHalfTurnsIsExact) {
  const Buffer<double> out(34);
  PLUGRAD_LAUNCH(turns, 1, 17, 0, nullptr, out.get());
  const std::vector<double> got = out.values();
  constexpr double kSines[] = {0, 1, 0, -1}, kCosines[] = {1, 0, -1, 0};
  for (size_t i = 0; i < 17; ++i) {
    EXPECT_EQ(got[2 * i], kSines[i % 4]);
    EXPECT_EQ(got[2 * i + 1], kCosines[i % 4]);
  }
}

// The last block to finish combines the results of all blocks.
__global__ void last_block(unsigned* ticket, int* partial, int* out) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = static_cast<int>(blockIdx.x) + 1;
    __threadfence();
    last = atomicAdd(ticket, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last || threadIdx.x) return;
  int sum = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) sum += partial[i];
  *out = sum;
  *ticket = 0;
}
TEST_F(Kernels, SmallLaunchesRunInSeveralOrders) {
  const Buffer<unsigned> ticket(std::vector<unsigned>{0});
  const Buffer<int> partial(10), out(1);
  const uint64_t ran = launches(), orders = schedules();
  for (int i = 0; i < 3; ++i) PLUGRAD_LAUNCH(last_block, 10, 32, 0, nullptr, ticket.get(), partial.get(), out.get());
  EXPECT_EQ(out.values()[0], 55);
  EXPECT_EQ(launches() - ran, 3u);
  EXPECT_EQ(schedules() - orders, 4u + 4u + 1u);  // the first two launches: three orders, and one with late writes
}

}  // namespace
}  // namespace simt::test
