// The first indices in the order of the elements of each line. A block computes a line: it sorts a short one in shared
// memory. Of a long one it finds the key of the last element to keep digit by digit (a radix selection), collects the
// elements up to it, and sorts them.
#include <backends/cuda/functions.hpp>
#include <backends/cuda/rows.hpp>
#include <backends/cuda/team.hpp>
#include <backends/cuda/walk.hpp>

namespace plugrad::cuda {
namespace {

constexpr int kEach = 4;     // elements that a thread reads at once
constexpr int kMost = 1024;  // elements that are sorted: as many as shared memory has room for

struct Selection {
  Walk<2> walk;  // the first elements of the lines: of out, x
  const char* x;
  int64_t length, kept, out_stride, x_stride;
  int64_t sorted, padded;  // elements to sort; the same, rounded up to a power of two
  uint32_t bits;           // of a key
  uint8_t dtype;
  bool descends;

  explicit Selection(const Call& call) : x(data<const char>(call.in(0))), dtype(call.in(0).dtype) {
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
    case PLUGRAD_BF16:
      return key_of_floating(static_cast<float>(element<BFloat16>(x, at)), element<BFloat16>(x, at).bits);
    case PLUGRAD_I32: return key_of_integer(element<uint32_t>(x, at));
    case PLUGRAD_I64: return key_of_integer(element<uint64_t>(x, at));
    default: return element<uint8_t>(x, at);
  }
}

// The keys of a line's elements.
struct Keys {
  const Selection& s;
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

// The largest key to keep, and how many elements with it.
struct Limit {
  uint64_t key;
  int64_t equals;
};

__device__ __forceinline__ Prefix<unsigned> scan_block(unsigned mine, unsigned* shared) {
  return Team{Team::kBits, 1}.scan<Add>(mine, shared);
}

constexpr uint32_t kDigitBits = 8, kDigits = 1u << kDigitBits;
static_assert(kDigits == kBlock);

// Finds the digits of the limit, the highest first, by counting the keys that have the digits found so far.
__device__ __forceinline__ Limit limit_of(const Selection& s, const Keys& keys, unsigned* counts, unsigned* shared) {
  __shared__ uint64_t found;
  __shared__ unsigned below;
  Limit limit{0, s.kept};
  for (uint32_t shift = s.bits; shift; shift -= kDigitBits) {
    const uint32_t low = shift - kDigitBits;
    counts[threadIdx.x] = 0;
    __syncthreads();
    keys.each([&](int64_t, uint64_t key) {
      if (shift == s.bits || key >> shift == limit.key) atomicAdd(&counts[(key >> low) % kDigits], 1u);
    });
    __syncthreads();
    const unsigned mine = counts[threadIdx.x], before = scan_block(mine, shared).before;
    if (before < limit.equals && limit.equals - before <= mine) {
      found = threadIdx.x;
      below = before;
    }
    __syncthreads();
    limit = {limit.key << kDigitBits | found, limit.equals - below};
    __syncthreads();
  }
  return limit;
}

// Writes the elements up to the limit in their order: those below it, then those that equal it.
__device__ __forceinline__ void collect(const Selection& s, const Keys& keys, const Limit& limit, Item* items,
                                        unsigned* shared) {
  int64_t lower = 0, equal = 0;
  for (int64_t first = 0; first < s.length; first += kBlock * kEach) {
    const int64_t mine = first + static_cast<int64_t>(threadIdx.x) * kEach;
    uint64_t own[kEach];
    unsigned counts = 0;  // of elements below the limit, and 2^16 times those that equal it
#pragma unroll
    for (int u = 0; u < kEach; ++u) {
      if (mine + u >= s.length) continue;
      own[u] = keys.at(mine + u);
      counts += own[u] < limit.key ? 1u : own[u] == limit.key ? 1u << 16 : 0u;
    }
    const Prefix<unsigned> prefix = scan_block(counts, shared);
    int64_t lower_at = lower + (prefix.before & 0xffffu), equal_at = equal + (prefix.before >> 16);
#pragma unroll
    for (int u = 0; u < kEach; ++u) {
      if (mine + u >= s.length || own[u] > limit.key) continue;
      if (own[u] < limit.key)
        items[lower_at++] = {own[u], mine + u};
      else if (equal_at++ < limit.equals)
        items[s.kept - limit.equals + equal_at - 1] = {own[u], mine + u};
    }
    lower += prefix.all & 0xffffu;
    equal += prefix.all >> 16;
  }
}

// Writes the elements to sort, and behind them some that come last.
__device__ __forceinline__ void gather(const Selection& s, const Keys& keys, Item* items, unsigned* counts,
                                       unsigned* shared) {
  if (s.length > kMost)
    collect(s, keys, limit_of(s, keys, counts, shared), items, shared);
  else
    keys.each([&](int64_t i, uint64_t key) { items[i] = {key, i}; });
  for (int64_t i = s.sorted + threadIdx.x; i < s.padded; i += kBlock) items[i] = {~uint64_t{0}, INT64_MAX};
  __syncthreads();
}

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

__global__ void __launch_bounds__(kBlock) select_kernel(const __grid_constant__ Selection s, int64_t* out) {
  __shared__ Item items[kMost];
  __shared__ unsigned counts[kBlock], shared[kBlock];
  for (uint64_t line = blockIdx.x; line < s.walk.count; line += gridDim.x) {
    const Reach<2> reach = s.walk.reach(line);
    const Keys keys{s, reach.at[1]};
    gather(s, keys, items, counts, shared);
    sort(items, s.padded);
    for (int64_t i = threadIdx.x; i < s.kept; i += kBlock) out[reach.at[0] + i * s.out_stride] = items[i].index;
    __syncthreads();
  }
}

// The host sorts the lines if there are more elements to keep.
void topk(const Call& call, const Submission& submission) {
  static Occupancy occupancy;
  const Selection s(call);
  if (s.sorted > kMost || s.length > INT32_MAX)
    throw BackendError(PLUGRAD_UNSUPPORTED, "[topk] " + std::to_string(s.kept) + " of " + std::to_string(s.length) +
                                                " elements: at most " + std::to_string(kMost) + " are kept here");
  PLUGRAD_LAUNCH(select_kernel, submission.blocks(select_kernel, s.walk.count, occupancy), kBlock, 0, submission.handle(), s,
                 data<int64_t>(call.out()));
  submission.launched();
}

template <class... T> constexpr std::array<KernelRow, sizeof...(T)> rows(Types<T...>) {
  constexpr uint16_t kDense = PLUGRAD_UNALIGNED | PLUGRAD_WIDE_INDEX;
  return {kernel<submit<topk>>(PLUGRAD_OP_TOPK, element_dtype<T>, kDense)...};
}
constexpr auto kRows = rows(kAny);

}  // namespace

Rows topk_rows() { return kRows; }

}  // namespace plugrad::cuda
