// The first indices in the order of the elements of each line. A block computes a line: it sorts a short line in shared
// memory. In a long line it finds the key of the last element to keep, digit by digit (a radix selection), collects the
// elements up to this key, and sorts them.
#include <backends/cuda/ordering.hpp>
#include <backends/cuda/rows.hpp>
#include <backends/cuda/team.hpp>

namespace plugrad::cuda {
namespace {

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

// Finds the digits of the limit, the highest first, by counting the keys with the digits found so far.
__device__ __forceinline__ Limit limit_of(const Lines& s, const Keys& keys, unsigned* counts, unsigned* shared) {
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

// Writes the elements up to the limit in their order: the lower elements, then the equal elements.
__device__ __forceinline__ void collect(const Lines& s, const Keys& keys, const Limit& limit, Item* items,
                                        unsigned* shared) {
  int64_t lower = 0, equal = 0;
  for (int64_t first = 0; first < s.length; first += kBlock * kEach) {
    const int64_t mine = first + static_cast<int64_t>(threadIdx.x) * kEach;
    uint64_t own[kEach];
    unsigned counts = 0;  // of elements below the limit, and 2^16 times the elements equal to it
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
      if (own[u] < limit.key) items[lower_at++] = {own[u], mine + u};
      else if (equal_at++ < limit.equals) items[s.kept - limit.equals + equal_at - 1] = {own[u], mine + u};
    }
    lower += prefix.all & 0xffffu;
    equal += prefix.all >> 16;
  }
}

// Writes the elements to sort, and behind them items that come last.
__device__ __forceinline__ void gather(const Lines& s, const Keys& keys, Item* items, unsigned* counts, unsigned* shared) {
  if (s.length > kMost) collect(s, keys, limit_of(s, keys, counts, shared), items, shared);
  else keys.each([&](int64_t i, uint64_t key) { items[i] = {key, i}; });
  for (int64_t i = s.sorted + threadIdx.x; i < s.padded; i += kBlock) items[i] = last_item();
  __syncthreads();
}

__global__ void __launch_bounds__(kBlock) select_kernel(const __grid_constant__ Lines s, int64_t* out) {
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

// A selection counts elements in 32 bits.
bool fits_selection(const Lines& lines) { return lines.sorted <= kMost && lines.length <= INT32_MAX; }

void topk(const Call& call, const Submission& submission) {
  const Lines lines(call);
  fits_selection(lines) ? sort_short_lines(call, submission, lines) : sort_lines(call, submission, lines);
}

uint64_t workspace(const Call& call) {
  const Lines lines(call);
  return fits_selection(lines) ? 0 : sorting_bytes(lines);
}

template <class... T> constexpr std::array<KernelRow, sizeof...(T)> rows(Types<T...>) {
  return {with_workspace<workspace>(kernel<submit<topk>>(PLUGRAD_OP_TOPK, element_dtype<T>, kDense))...};
}
constexpr auto kRows = rows(kAny);

}  // namespace

void sort_short_lines(const Call& call, const Submission& submission, const Lines& lines) {
  static Occupancy occupancy;
  PLUGRAD_LAUNCH(select_kernel, submission.blocks(select_kernel, lines.walk.count, occupancy), kBlock, 0,
                 submission.handle(), lines, data<int64_t>(call.out()));
  submission.launched();
}

Rows topk_rows() { return kRows; }

}  // namespace plugrad::cuda
