// The parts of CUDA C++ that kernels use: thread indices, barriers of block and warp, atomics, mathematical functions.
#pragma once
#include <simt/vectors.hpp>

#include <math.h>
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

// The indices of the GPU thread that runs now. The emulator sets them; kernels read them.
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
inline constexpr int warpSize = 32;

namespace simt {

struct Site {
  const char* file;
  int line;
};
enum class Vote : uint8_t { none, count, any, all };            // the vote of a barrier
enum class Meeting : uint8_t { sync, shuffle, ballot, match };  // a meeting of a warp's lanes

// Waits for all threads of the block that have not returned.
int barrier(int predicate, Vote vote, const char* what, Site site);
// Waits for the lanes of mask. A shuffle returns the value of lane `source` (the lane's own value if source is outside the
// warp), a ballot the lanes whose value is not 0, a match the lanes with the same value.
uint64_t meet(Meeting meeting, unsigned mask, uint64_t value, int source, const char* what, Site site);
int lane();
void* dynamic_shared();
// Records an atomic operation on these bytes.
void note_atomic(void* address, size_t bytes);
// Records a floating-point addition in undefined order, of at most this magnitude: another order may round differently.
void note_sum(void* address, size_t bytes, double magnitude);
// Makes the block's earlier writes visible to all blocks.
void fence();
[[noreturn]] void trap(const char* what, Site site);

template <class T> uint64_t bits_of(T value) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}
template <class T> T shuffle(unsigned mask, T value, int source, const char* what, Site site) {
  const uint64_t bits = meet(Meeting::shuffle, mask, bits_of(value), source, what, site);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
// The first lane of this lane's group of `width` lanes.
inline int part(int width) { return lane() & ~(width - 1); }

// Atomically sets *address to f(*address), also with respect to host threads; returns the old value.
template <class T, class F> T update(T* address, F f) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  note_atomic(address, sizeof(T));
  auto* word = reinterpret_cast<Bits*>(address);
  Bits seen = __atomic_load_n(word, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(word, &seen, std::bit_cast<Bits>(f(std::bit_cast<T>(seen))), false, __ATOMIC_SEQ_CST,
                                      __ATOMIC_RELAXED)) {
  }
  return std::bit_cast<T>(seen);
}

}  // namespace simt

// The call site is a default argument, so that a message can name it.
inline void __syncthreads(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  simt::barrier(0, simt::Vote::none, "__syncthreads", {file, line});
}
inline int __syncthreads_count(int p, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return simt::barrier(p, simt::Vote::count, "__syncthreads_count", {file, line});
}
inline int __syncthreads_or(int p, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return simt::barrier(p, simt::Vote::any, "__syncthreads_or", {file, line});
}
inline int __syncthreads_and(int p, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return simt::barrier(p, simt::Vote::all, "__syncthreads_and", {file, line});
}
inline void __syncwarp(unsigned mask = ~0u, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  simt::meet(simt::Meeting::sync, mask, 0, -1, "__syncwarp", {file, line});
}
inline unsigned __ballot_sync(unsigned mask, int p, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return static_cast<unsigned>(simt::meet(simt::Meeting::ballot, mask, p != 0, -1, "__ballot_sync", {file, line}));
}
inline int __any_sync(unsigned mask, int p, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return simt::meet(simt::Meeting::ballot, mask, p != 0, -1, "__any_sync", {file, line}) != 0;
}
inline int __all_sync(unsigned mask, int p, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return simt::meet(simt::Meeting::ballot, mask, p == 0, -1, "__all_sync", {file, line}) == 0;
}
template <class T>
unsigned __match_any_sync(unsigned mask, T value, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return static_cast<unsigned>(
      simt::meet(simt::Meeting::match, mask, simt::bits_of(value), -1, "__match_any_sync", {file, line}));
}
template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, const char* file = __builtin_FILE(),
              int line = __builtin_LINE()) {
  return simt::shuffle(mask, value, simt::part(width) + (source & (width - 1)), "__shfl_sync", {file, line});
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, const char* file = __builtin_FILE(),
                   int line = __builtin_LINE()) {
  const int source = simt::lane() + static_cast<int>(delta);
  return simt::shuffle(mask, value, source < simt::part(width) + width ? source : -1, "__shfl_down_sync", {file, line});
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, const char* file = __builtin_FILE(),
                 int line = __builtin_LINE()) {
  const int source = simt::lane() - static_cast<int>(delta);
  return simt::shuffle(mask, value, source >= simt::part(width) ? source : -1, "__shfl_up_sync", {file, line});
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  const int source = simt::lane() ^ bits;
  return simt::shuffle(mask, value, source < simt::part(width) + width ? source : -1, "__shfl_xor_sync", {file, line});
}
[[noreturn]] inline void __trap(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  simt::trap("__trap", {file, line});
}

// One OS thread runs all GPU threads of a launch, so a fence only matters where the emulator delays writes.
inline void __threadfence() { simt::fence(); }
inline void __threadfence_block() {}
inline void __threadfence_system() { simt::fence(); }

// A GPU's atomic addition in global memory treats float denormals as 0.
inline float simt_flushed(float x) { return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }
inline float atomicAdd(float* address, float value) {
  const float seen = simt::update(address, [=](float old) { return simt_flushed(simt_flushed(old) + simt_flushed(value)); });
  simt::note_sum(address, sizeof seen,
                 static_cast<double>(std::max({std::abs(seen), std::abs(value), std::abs(seen + value)})));
  return seen;
}
template <class T> T atomicAdd(T* address, std::type_identity_t<T> value) {
  const T seen = simt::update(address, [=](T old) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(std::make_unsigned_t<T>(old) + std::make_unsigned_t<T>(value));
    else return old + value;
  });
  if constexpr (std::is_floating_point_v<T>)
    simt::note_sum(address, sizeof(T),
                   static_cast<double>(std::max({std::abs(seen), std::abs(value), std::abs(seen + value)})));
  return seen;
}
template <class T> T atomicMin(T* address, std::type_identity_t<T> value) {
  return simt::update(address, [=](T old) { return value < old ? value : old; });
}
template <class T> T atomicMax(T* address, std::type_identity_t<T> value) {
  return simt::update(address, [=](T old) { return old < value ? value : old; });
}
template <class T> T atomicExch(T* address, std::type_identity_t<T> value) {
  return simt::update(address, [=](T) { return value; });
}
template <class T> T atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  return simt::update(address, [=](T old) { return simt::bits_of(old) == simt::bits_of(expected) ? value : old; });
}
template <class T> T atomicOr(T* address, std::type_identity_t<T> value) {
  return simt::update(address, [=](T old) { return static_cast<T>(old | value); });
}
template <class T> T atomicAnd(T* address, std::type_identity_t<T> value) {
  return simt::update(address, [=](T old) { return static_cast<T>(old & value); });
}
template <class T> T atomicAdd_system(T* address, std::type_identity_t<T> value) { return atomicAdd(address, value); }
template <class T> T atomicMin_system(T* address, std::type_identity_t<T> value) { return atomicMin(address, value); }
template <class T> T atomicMax_system(T* address, std::type_identity_t<T> value) { return atomicMax(address, value); }

template <class T> T __ldg(const T* address) { return *address; }
template <class T> T __ldcs(const T* address) { return *address; }
template <class T> T __ldcg(const T* address) { return *address; }
template <class T> void __stcs(T* address, std::type_identity_t<T> value) { *address = value; }
template <class T> void __stcg(T* address, std::type_identity_t<T> value) { *address = value; }

inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
inline double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }
inline int __popc(unsigned x) { return std::popcount(x); }
inline int __popcll(unsigned long long x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __clzll(long long x) { return std::countl_zero(static_cast<unsigned long long>(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>((uint64_t{a} * b) >> 32); }
inline int __mulhi(int a, int b) { return static_cast<int>((int64_t{a} * b) >> 32); }
__extension__ using simt_wide = unsigned __int128;
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>((simt_wide{a} * b) >> 64);
}

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __dsqrt_rn(double x) { return std::sqrt(x); }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
inline double rsqrt(double x) { return 1 / std::sqrt(x); }
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __saturatef(float x) { return x > 0 ? x < 1 ? x : 1 : 0; }

namespace simt {
// sin and cos of pi x, exact at multiples of 1/2.
template <class T> void sincospi(T x, T* sine, T* cosine) {
  const T quarters = std::nearbyint(2 * x);  // x = quarters / 2 + rest, |rest| <= 1/4; inf and NaN go through
  const double angle = static_cast<double>(x - quarters / 2) * 3.14159265358979323846;
  const T s = static_cast<T>(std::sin(angle)), c = static_cast<T>(std::cos(angle));
  const int quadrant = static_cast<int>(std::fmod(std::abs(quarters), T(4))),
            turned = quarters < 0 ? (4 - quadrant) % 4 : quadrant;
  const T sines[] = {s, c, -s, -c}, cosines[] = {c, -s, -c, s};
  *sine = std::isfinite(x) ? sines[turned] : x - x;
  *cosine = std::isfinite(x) ? cosines[turned] : x - x;
}
}  // namespace simt
inline void sincospif(float x, float* sine, float* cosine) { simt::sincospi(x, sine, cosine); }
inline void sincospi(double x, double* sine, double* cosine) { simt::sincospi(x, sine, cosine); }
inline float sinpif(float x) {
  float s, c;
  return sincospif(x, &s, &c), s;
}
inline float cospif(float x) {
  float s, c;
  return sincospif(x, &s, &c), c;
}
inline double sinpi(double x) {
  double s, c;
  return sincospi(x, &s, &c), s;
}
inline double cospi(double x) {
  double s, c;
  return sincospi(x, &s, &c), c;
}

// CUDA declares these functions outside any namespace, for two arguments of the same arithmetic type.
template <class T>
  requires std::is_arithmetic_v<T>
constexpr T min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
  requires std::is_arithmetic_v<T>
constexpr T max(T a, T b) {
  return a < b ? b : a;
}
