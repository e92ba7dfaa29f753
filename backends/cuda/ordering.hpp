// The order of the elements of lines: keys in the same order, and a sort of a few elements in shared memory.
#pragma once
#include <backends/cuda/functions.hpp>
#include <backends/cuda/submission.hpp>
#include <backends/cuda/walk.hpp>

namespace plugrad::cuda {

inline constexpr int kEach = 4;     // elements read by a thread at once
inline constexpr int kMost = 1024;  // elements sorted by a block: as many as fit into shared memory

struct Lines {
  Walk<2> walk;  // the first elements of the lines: of out, x
  const char* x;
  int64_t length, kept, out_stride, x_stride;
  int64_t sorted, padded;  // elements to sort; the same, rounded up to a power of two
  uint32_t bits;           // of a key
  uint8_t dtype;
  bool descends;

  explicit Lines(const Call& call) : x(data<const char>(call.in(0))), dtype(call.in(0).dtype) {
    const plugrad_view &out = call.out(), &in = call.in(0);
    const auto& attributes = call.attributes<plugrad_sort>();
    length = in.shape[attributes.axis];
    kept = out.shape[attributes.axis];
    sorted = length > kMost ? kept : length;
    for (padded = 1; padded < sorted;) padded *= 2;
    out_stride = stride_of(out, attributes.axis);
    x_stride = stride_of(in, attributes.axis);
    bits = static_cast<uint32_t>(8 * element_size(dtype));
    descends = attributes.descending != 0;
    for (int d = in.rank - 1; d >= 0; --d)
      if (d != attributes.axis) walk.add(in.shape[d], {stride_of(out, d), stride_of(in, d)});
    walk.close();
  }
};

struct Item {
  uint64_t key;
  int64_t index;
  __device__ __forceinline__ bool precedes(const Item& other) const {
    return key < other.key || (key == other.key && index < other.index);
  }
};
// Returns an item that comes after all elements.
__device__ __forceinline__ Item last_item() { return {~uint64_t{0}, INT64_MAX}; }

// Keys are unsigned numbers in the order of the elements. -0 equals 0; NaN is the largest.
template <class U, class T> __device__ __forceinline__ uint64_t key_of_floating(T x, U word) {
  constexpr U kSign = static_cast<U>(U(1) << (8 * sizeof(U) - 1));
  if (is_nan(x)) return static_cast<U>(~U(0));
  if (x == 0) return kSign;
  return static_cast<U>(word & kSign ? ~word : word | kSign);
}
template <class U> __device__ __forceinline__ uint64_t key_of_integer(U word) {
  return static_cast<U>(word ^ static_cast<U>(U(1) << (8 * sizeof(U) - 1)));
}
template <class T> __device__ __forceinline__ T element(const char* x, int64_t at) {
  return reinterpret_cast<const T*>(x)[at];
}

__device__ __forceinline__ uint64_t key_of(const char* x, uint8_t dtype, int64_t at) {
  switch (dtype) {
    case PLUGRAD_F32: return key_of_floating(element<float>(x, at), element<uint32_t>(x, at));
    case PLUGRAD_F64: return key_of_floating(element<double>(x, at), element<uint64_t>(x, at));
    case PLUGRAD_BF16: return key_of_floating(static_cast<float>(element<BFloat16>(x, at)), element<BFloat16>(x, at).bits);
    case PLUGRAD_I32: return key_of_integer(element<uint32_t>(x, at));
    case PLUGRAD_I64: return key_of_integer(element<uint64_t>(x, at));
    default: return element<uint8_t>(x, at);
  }
}

// The keys of a line's elements.
struct Keys {
  const Lines& s;
  int64_t first;

  __device__ __forceinline__ uint64_t at(int64_t i) const {
    const uint64_t key = key_of(s.x, s.dtype, first + i * s.x_stride);
    return s.descends ? ~key & (~uint64_t{0} >> (64 - s.bits)) : key;
  }
  // Calls f(i, key) for this thread's elements.
  template <class F> __device__ __forceinline__ void each(F f) const {
    constexpr int64_t kStep = kBlock;
    for (int64_t i = threadIdx.x; i < s.length; i += kStep * kEach) {
      uint64_t keys[kEach];
#pragma unroll
      for (int u = 0; u < kEach; ++u)
        if (i + u * kStep < s.length) keys[u] = at(i + u * kStep);
#pragma unroll
      for (int u = 0; u < kEach; ++u)
        if (i + u * kStep < s.length) f(i + u * kStep, keys[u]);
    }
  }
};

// Batcher's bitonic sort.
__device__ __forceinline__ void sort(Item* items, int64_t count) {
  for (int64_t size = 2; size <= count; size *= 2)
    for (int64_t apart = size / 2; apart; apart /= 2) {
      for (int64_t p = threadIdx.x; p < count / 2; p += kBlock) {
        const int64_t i = 2 * p - (p & (apart - 1));
        const Item a = items[i], b = items[i + apart];
        if (b.precedes(a) != ((i & size) == 0)) continue;
        items[i] = b;
        items[i + apart] = a;
      }
      __syncthreads();
    }
}

// Sorts lines of at most kMost elements, or finds their first elements, at most kMost; each line in a block's shared memory.
void sort_short_lines(const Call& call, const Submission& submission, const Lines& lines);
// Sorts lines of any length and keeps the first elements. Needs a workspace of sorting_bytes().
void sort_lines(const Call& call, const Submission& submission, const Lines& lines);
uint64_t sorting_bytes(const Lines& lines);

// The layouts of the kernels: their operands are dense.
inline constexpr uint16_t kDense = PLUGRAD_UNALIGNED | PLUGRAD_WIDE_INDEX;

}  // namespace plugrad::cuda
