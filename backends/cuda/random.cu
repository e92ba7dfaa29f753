// Random numbers with the same bits on every device. A thread computes one Philox counter, for 4 or 2 elements.
#include <backends/cuda/elementwise.hpp>
#include <backends/cuda/rows.hpp>
#include <backends/cuda/walk.hpp>

#include <cmath>

namespace plugrad::cuda {
namespace {

struct Words {
  uint32_t at[4];
};

// Philox 4x32-10: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11.
__device__ Words philox(uint64_t key, uint64_t counter) {
  auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  uint32_t c0 = static_cast<uint32_t>(counter), c1 = static_cast<uint32_t>(counter >> 32), c2 = 0, c3 = 0;
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t(0xD2511F53) * c0, p1 = uint64_t(0xCD9E8D57) * c2;
    c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(p1);
    c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(p0);
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {{c0, c1, c2, c3}};
}

template <class T> inline constexpr int kPerCounter = 16 / sizeof(T);

__device__ void uniforms(const Words& words, Pack<float, 4>& out) {
#pragma unroll
  for (int j = 0; j < 4; ++j) out.at[j] = static_cast<float>(words.at[j] >> 8) * 0x1p-24f;
}
__device__ void uniforms(const Words& words, Pack<double, 2>& out) {
#pragma unroll
  for (int j = 0; j < 2; ++j)
    out.at[j] = static_cast<double>((static_cast<uint64_t>(words.at[2 * j + 1]) << 32 | words.at[2 * j]) >> 11) * 0x1p-53;
}

__device__ void sine_and_cosine_of_pi_times(float x, float& sine, float& cosine) { sincospif(x, &sine, &cosine); }
__device__ void sine_and_cosine_of_pi_times(double x, double& sine, double& cosine) { sincospi(x, &sine, &cosine); }

// Box-Muller transform: 1 - u and 2 v are exact.
template <class T, int n> __device__ void make_normal(Pack<T, n>& pack) {
#pragma unroll
  for (int j = 0; j < n; j += 2) {
    const T radius = std::sqrt(-2 * std::log(1 - pack.at[j]));
    T sine, cosine;
    sine_and_cosine_of_pi_times(2 * pack.at[j + 1], sine, cosine);
    pack.at[j] = radius * cosine;
    pack.at[j + 1] = radius * sine;
  }
}

template <class T, bool normal>
__global__ void __launch_bounds__(kBlock)
    random_kernel(const __grid_constant__ Walk<1> walk, T* out, const Input<int64_t> seed, const Input<int64_t> offset,
                  bool packed) {
  constexpr int n = kPerCounter<T>;
  const auto key = static_cast<uint64_t>(seed.at(0)), base = static_cast<uint64_t>(offset.at(0));
  const uint64_t threads = static_cast<uint64_t>(gridDim.x) * kBlock;
  for (uint64_t counter = static_cast<uint64_t>(blockIdx.x) * kBlock + threadIdx.x; counter * n < walk.count;
       counter += threads) {
    Pack<T, n> pack;
    uniforms(philox(key, base + counter), pack);
    if constexpr (normal) make_normal(pack);
    const uint64_t first = counter * n;
    if (packed && first + n <= walk.count) {
      *reinterpret_cast<Pack<T, n>*>(out + first) = pack;
      continue;
    }
#pragma unroll
    for (int j = 0; j < n; ++j)
      if (first + j < walk.count) out[walk.reach(first + j).at[0]] = pack.at[j];
  }
}

template <class T, bool normal> void draw(const Call& call, const Submission& submission) {
  static Occupancy occupancy;
  const plugrad_view& out = call.out();
  Walk<1> walk;
  for (int d = out.rank - 1; d >= 0; --d) walk.add(out.shape[d], {stride_of(out, d)});
  walk.close();
  const bool packed = !(out.layout & PLUGRAD_STRIDED) && reinterpret_cast<uintptr_t>(data<T>(out)) % 16 == 0;
  const uint64_t counters = (walk.count + kPerCounter<T> - 1) / kPerCounter<T>;
  const auto kernel = random_kernel<T, normal>;
  PLUGRAD_LAUNCH(kernel, submission.blocks(kernel, (counters + kBlock - 1) / kBlock, occupancy), kBlock, 0,
                 submission.handle(), walk, data<T>(out), Input<int64_t>(call.in(0)), Input<int64_t>(call.in(1)), packed);
  submission.launched();
}

template <class... T> constexpr auto rows(Types<T...>) {
  return join(std::array{kernel<submit<draw<T, false>>>(PLUGRAD_OP_UNIFORM, element_dtype<T>)...},
              std::array{kernel<submit<draw<T, true>>>(PLUGRAD_OP_NORMAL, element_dtype<T>)...});
}
constexpr auto kRows = rows(kComputable);

}  // namespace

Rows random_rows() { return kRows; }

}  // namespace plugrad::cuda
