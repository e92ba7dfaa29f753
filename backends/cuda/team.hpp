// A team is a set of threads of a block that reduce together. Teams have equal size, a power of two.
#pragma once
#include <backends/cuda/map.hpp>

#include <algorithm>
#include <cstring>

namespace plugrad::cuda {

// Returns the value of lane (own lane ^ lanes), word by word. All lanes of a warp take part.
template <class T> __device__ __forceinline__ T from_lane(const T& mine, int lanes) {
  static_assert(sizeof(T) % sizeof(int) == 0);
  int words[sizeof(T) / sizeof(int)];
  memcpy(words, &mine, sizeof mine);
#pragma unroll
  for (int& word : words) word = __shfl_xor_sync(0xffffffffu, word, lanes);
  T theirs;
  memcpy(&theirs, words, sizeof theirs);
  return theirs;
}

// The result of a scan: the combined value of the members before this one, and of all; T(0) without any.
template <class T> struct Prefix {
  T before, all;
};

struct Team {
  uint32_t bits;            // 1 << bits threads
  uint32_t are_neighbours;  // members are adjacent threads; otherwise adjacent threads belong to different teams

  static constexpr uint32_t kBits = 8;
  static_assert(1 << kBits == kBlock);

  __host__ __device__ uint32_t size() const { return 1u << bits; }
  __host__ __device__ uint32_t teams() const { return kBlock >> bits; }
  __device__ uint32_t member() const { return are_neighbours ? threadIdx.x & (size() - 1) : threadIdx.x >> (kBits - bits); }
  __device__ uint32_t team() const { return are_neighbours ? threadIdx.x >> bits : threadIdx.x & (teams() - 1); }

  // Returns the members' combined value to each of them. All threads of the block take part; shared has kBlock elements.
  template <class Combine, class T> __device__ T reduce(const T& mine, T* shared) const {
    return are_neighbours ? reduce_neighbours<Combine>(mine, shared) : reduce_columns<Combine>(mine, shared);
  }

  // Combines the members' values in their order. All threads of the block take part; shared has kBlock elements.
  template <class Combine, class T> __device__ Prefix<T> scan(const T& mine, T* shared) const {
    const uint32_t step = are_neighbours ? 1 : teams(), first = threadIdx.x - member() * step;
    T all = mine;
    __syncthreads();  // a thread may still read an earlier result
    shared[threadIdx.x] = mine;
    for (uint32_t apart = 1; apart < size(); apart *= 2) {
      __syncthreads();
      if (member() >= apart) all = Combine()(shared[threadIdx.x - apart * step], all);
      __syncthreads();
      shared[threadIdx.x] = all;
    }
    __syncthreads();
    return {member() ? shared[threadIdx.x - step] : T(0), shared[first + (size() - 1) * step]};
  }

 private:
  template <class Combine, class T> __device__ T reduce_neighbours(const T& mine, T* shared) const {
    T all = mine;
    for (uint32_t lanes = 1; lanes < size() && lanes < 32; lanes *= 2) {
      const T theirs = from_lane(all, static_cast<int>(lanes));
      // The lower lane comes first for both: the largest of 0 and -0 depends on the order.
      all = threadIdx.x & lanes ? Combine()(theirs, all) : Combine()(all, theirs);
    }
    if (bits <= 5) return all;
    const uint32_t warp = threadIdx.x / 32, warps = size() / 32, first = warp / warps * warps;
    __syncthreads();  // a thread may still read an earlier result
    if (threadIdx.x % 32 == 0) shared[warp] = all;
    __syncthreads();
    all = shared[first];
    for (uint32_t w = 1; w < warps; ++w) all = Combine()(all, shared[first + w]);
    return all;
  }
  template <class Combine, class T> __device__ T reduce_columns(const T& mine, T* shared) const {
    __syncthreads();
    shared[threadIdx.x] = mine;
    for (uint32_t half = size() / 2; half; half /= 2) {
      __syncthreads();
      if (member() < half) shared[threadIdx.x] = Combine()(shared[threadIdx.x], shared[threadIdx.x + half * teams()]);
    }
    __syncthreads();
    return shared[team()];
  }
};

inline uint32_t bits_for(uint64_t n) {
  uint32_t bits = 0;
  while (bits < Team::kBits && (uint64_t(1) << bits) < n) ++bits;
  return bits;
}

inline constexpr uint64_t kWorthAThread = 4;  // elements, or packs of them

// Chooses teams for `lines` reductions of `length` elements, about `each` of them per thread. Members are adjacent threads
// if the elements of a line are adjacent in memory.
inline Team choose_team(uint64_t lines, uint64_t length, bool length_is_contiguous, uint64_t each = kWorthAThread) {
  const uint32_t wanted = bits_for((length + each - 1) / each);
  if (length_is_contiguous) return {wanted, 1};
  const uint32_t across = std::min(bits_for(lines), Team::kBits);
  const uint32_t room = Team::kBits - std::min(across, uint32_t(5));
  return {std::min(wanted, std::max(room, Team::kBits - across)), 0};
}

}  // namespace plugrad::cuda
