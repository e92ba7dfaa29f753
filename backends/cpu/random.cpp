// Random numbers by Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/random.cpp"
#include <hwy/foreach_target.h>

#include <backends/cpu/elementwise.hpp>
#include <backends/cpu/math-inl.hpp>
#include <backends/cpu/pool.hpp>
#include <backends/cpu/rows.hpp>
#include <backends/cpu/tile.hpp>

#include <algorithm>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace plugrad::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kCounters = 64;  // counters per batch
constexpr int64_t kBatches = 16;   // batches between two copies to the output

using Words = uint64_t[2 * kCounters];  // two words each, the low word first: in the order of the output

// The 64-bit products of the low halves of lanes.
template <class D, class V> HWY_INLINE V product_of_low(D d, V x, uint64_t multiplier) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Mul(hn::And(x, hn::Set(d, uint64_t(0xffffffff))), hn::Set(d, multiplier));
#else
  const hn::Repartition<uint32_t, D> half;
  return hn::MulEven(hn::BitCast(half, x), hn::BitCast(half, hn::Set(d, multiplier)));
#endif
}

template <class D, class V> HWY_INLINE void single_round(D d, V key0, V key1, V& a, V& b, V& c, V& e) {
  const V p0 = product_of_low(d, a, 0xD2511F53), p1 = product_of_low(d, c, 0xCD9E8D57);
  a = hn::Xor(hn::Xor(hn::ShiftRight<32>(p1), b), key0);
  c = hn::Xor(hn::Xor(hn::ShiftRight<32>(p0), e), key1);
  b = p1;
  e = p0;
}

// Words are in the low halves of 64-bit lanes. Products read only the low halves, so the high halves may have any value.
void philox(uint64_t seed, uint64_t first, Words& words) {
  const hn::ScalableTag<uint64_t> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(d));
  const V low = hn::Set(d, uint64_t(0xffffffff));
  for (int64_t i = 0; i < kCounters; i += 2 * kLanes) {  // two at a time, since each is a long dependency chain
    V a = hn::Iota(d, first + static_cast<uint64_t>(i)), b = hn::ShiftRight<32>(a), c = hn::Zero(d), e = c;
    V f = hn::Iota(d, first + static_cast<uint64_t>(i + kLanes)), g = hn::ShiftRight<32>(f), h = c, k = c;
    uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round, key0 += 0x9E3779B9, key1 += 0xBB67AE85) {
      const V mask0 = hn::Set(d, static_cast<uint64_t>(key0)), mask1 = hn::Set(d, static_cast<uint64_t>(key1));
      single_round(d, mask0, mask1, a, b, c, e);
      single_round(d, mask0, mask1, f, g, h, k);
    }
    const auto pair = [low](V x, V y) HWY_ATTR { return hn::Or(hn::And(x, low), hn::ShiftLeft<32>(y)); };
    hn::StoreInterleaved2(pair(a, b), pair(c, e), d, words + 2 * i);
    hn::StoreInterleaved2(pair(f, g), pair(h, k), d, words + 2 * (i + kLanes));
  }
}

template <class T> inline constexpr int64_t kPerCounter = 16 / static_cast<int64_t>(sizeof(T));
template <class T> inline constexpr int64_t kBatch = kCounters * kPerCounter<T>;

void to_uniforms(const Words& words, float* out) {
  uint32_t halves[4 * kCounters];
  std::memcpy(halves, words, sizeof halves);
#pragma omp simd
  for (int64_t i = 0; i < 4 * kCounters; ++i) out[i] = static_cast<float>(static_cast<int32_t>(halves[i] >> 8)) * 0x1p-24f;
}
void to_uniforms(const Words& words, double* out) {
#pragma omp simd
  for (int64_t i = 0; i < 2 * kCounters; ++i) out[i] = static_cast<double>(static_cast<int64_t>(words[i] >> 11)) * 0x1p-53;
}

// Converts pairs of uniforms to pairs of normals in place, by the Box-Muller transform.
template <class T> void to_normals(T* x) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr int64_t kPairs = kBatch<T> / 2;
  HWY_ALIGN T u[kPairs], v[kPairs];
  for (int64_t i = 0; i < kPairs; ++i) {
    u[i] = 1 - x[2 * i];
    v[i] = x[2 * i + 1];
  }
  for (int64_t i = 0; i < kPairs; i += lanes) {
    const auto r = hn::Sqrt(hn::Mul(hn::Set(d, T(-2)), log(d, hn::Load(d, u + i))));
    auto cosine = r, sine = r;
    cos_sin_turns(d, hn::Load(d, v + i), cosine, sine);
    hn::Store(hn::Mul(r, cosine), d, u + i);
    hn::Store(hn::Mul(r, sine), d, v + i);
  }
  for (int64_t i = 0; i < kPairs; ++i) {
    x[2 * i] = u[i];
    x[2 * i + 1] = v[i];
  }
}

// Elements first .. first + n - 1 of the output, in row-major order, n at most a whole run of batches.
template <class T> void scatter(const plugrad_view& out, const T* from, int64_t first, int64_t n) {
  if (is_dense(out)) {
    std::copy_n(from, n, data<T>(out) + first);
    return;
  }
  const int last = out.rank - 1;
  const int64_t columns = out.shape[last], stride = step(out, last);
  for (int64_t done = 0; done < n;) {
    const int64_t column = (first + done) % columns, some = std::min(n - done, columns - column);
    int64_t row = (first + done) / columns;
    char* p = data<char>(out) + column * stride;
    for (int d = last - 1; d >= 0; row /= out.shape[d--]) p += row % out.shape[d] * step(out, d);
    const Tile source{reinterpret_cast<char*>(const_cast<T*>(from + done)), 0, sizeof(T)};
    copy_tile({p, 0, stride}, source, 1, some, sizeof(T));
    done += some;
  }
}

template <class T, bool normal> void generate(const Call& call) {
  const plugrad_view& out = call.out();
  const uint64_t seed = static_cast<uint64_t>(element<int64_t>(call.in(0))),
                 offset = static_cast<uint64_t>(element<int64_t>(call.in(1)));
  constexpr int64_t kRun = kBatches * kBatch<T>;
  parallel(threads_of(call), (out.count + kRun - 1) / kRun, [&](int64_t task) {
    T numbers[kRun];
    const int64_t first = task * kRun, n = std::min(kRun, out.count - first);
    for (int64_t i = 0; i < n; i += kBatch<T>) {
      HWY_ALIGN Words words;
      philox(seed, offset + static_cast<uint64_t>(first + i) / kPerCounter<T>, words);
      to_uniforms(words, numbers + i);
      if constexpr (normal) to_normals(numbers + i);
    }
    scatter(out, numbers, first, n);
  });
}

template <class T> void append(RowList& rows) {
  rows.push_back(kernel<generate<T, false>>(PLUGRAD_OP_UNIFORM, kDtype<T>));
  rows.push_back(kernel<generate<T, true>>(PLUGRAD_OP_NORMAL, kDtype<T>));
}

}  // namespace
}  // namespace plugrad::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

namespace plugrad::cpu {
template <> void append_random<HWY_TARGET>(RowList& rows) {
  HWY_NAMESPACE::append<float>(rows);
  HWY_NAMESPACE::append<double>(rows);
}
}  // namespace plugrad::cpu
