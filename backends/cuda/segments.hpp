// Reductions of lines of equal length, by the plugin's kernels and by kernels compiled for fusions at run time.
#pragma once
#include <backends/cuda/team.hpp>

namespace plugrad::cuda {

// Each team of threads reduces a line; the lines of one block's teams form a group. If there are too few groups to fill the
// device, lines are cut into segments. Each block then takes one segment of a group, and the last block to finish combines
// the group's segments.
struct Segments {
  uint64_t lines = 0, length = 0;    // length: of a line, in elements or packs of them
  uint64_t size = 0;                 // of a segment
  uint32_t per_line = 1, tasks = 0;  // tasks: segments of all groups
  Team team{};

  Segments() = default;
  // least: the fewest elements or packs per thread in a worthwhile segment.
  Segments(uint64_t of_lines, uint64_t its_length, Team its_team, uint64_t least, int multiprocessors);
  uint64_t groups() const { return (lines + team.teams() - 1) / team.teams(); }
  // Intermediate results for the last block to combine: one for each team of each task.
  uint64_t partials() const { return per_line > 1 ? static_cast<uint64_t>(tasks) * team.teams() : 0; }
};

// Returns whether this block is the last of `blocks` to arrive. The last block sees all writes of earlier blocks before
// their arrival, and resets the counter to 0 for the next kernel.
__device__ inline bool arrives_last(uint32_t* counter, uint32_t blocks) {
  __shared__ uint32_t arrived;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    arrived = atomicAdd(counter, 1u) + 1;
    if (arrived == blocks) *counter = 0;
    __threadfence();
  }
  __syncthreads();
  return arrived == blocks;
}

// A reducer R has: Sums, an intermediate result; Combine, a function of two of them; identity(); Line; line(number);
// run(line, begin, end), to reduce a team member's share of a line's elements or packs from begin to end; finish(line,
// sums), to write the result.
template <class R>
__device__ __forceinline__ typename R::Sums reduce_segment(const R& r, const Segments& segments,
                                                           const typename R::Line& line, uint64_t begin, uint64_t end) {
  constexpr uint64_t kRun = 512;  // elements or packs added in sequence by one accumulator: more would lose accuracy
  typename R::Sums sums = r.identity();
  for (const uint64_t step = kRun * segments.team.size(); begin < end; begin += step)
    sums = typename R::Combine()(sums, r.run(line, begin, begin + step < end ? begin + step : end));
  return sums;
}

template <class R>
__device__ __forceinline__ void reduce_lines(const R& r, const Segments& segments, typename R::Sums* partials,
                                             uint32_t* counters) {
  __shared__ typename R::Sums shared[kBlock];
  const Team& team = segments.team;
  for (uint32_t task = blockIdx.x; task < segments.tasks; task += gridDim.x) {
    const uint32_t group = task / segments.per_line;
    const uint64_t number = static_cast<uint64_t>(group) * team.teams() + team.team(),
                   begin = (task - group * segments.per_line) * segments.size;
    const uint64_t end = begin + segments.size < segments.length ? begin + segments.size : segments.length;
    const bool is_there = number < segments.lines, writes = is_there && team.member() == 0;
    const auto line = is_there ? r.line(number) : typename R::Line{};
    typename R::Sums sums = is_there ? reduce_segment(r, segments, line, begin, end) : r.identity();
    sums = team.reduce<typename R::Combine>(sums, shared);
    if (segments.per_line > 1) {
      if (writes) partials[static_cast<uint64_t>(task) * team.teams() + team.team()] = sums;
      if (!arrives_last(counters + group, segments.per_line)) continue;
      sums = r.identity();
      const uint64_t first = static_cast<uint64_t>(group) * segments.per_line;
#pragma unroll 4
      for (uint32_t s = team.member(); is_there && s < segments.per_line; s += team.size())
        sums = typename R::Combine()(sums, partials[(first + s) * team.teams() + team.team()]);  // in order of segments
      sums = team.reduce<typename R::Combine>(sums, shared);
    }
    if (writes) r.finish(line, sums);
  }
}

}  // namespace plugrad::cuda
