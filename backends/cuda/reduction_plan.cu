#include <backends/cuda/reduction.hpp>

namespace plugrad::cuda {

// Where both extents are 1 nothing is left to do. The reduced axes stay in row-major order: ARGMAX counts along them.
Reduction::Reduction(const plugrad_view& in, const plugrad_view& out, int multiprocessors) {
  for (int d = in.rank - 1; d >= 0; --d) {
    if (out.shape[d] == 1)
      reduced.add(in.shape[d], {stride_of(in, d)});
    else
      kept.add(in.shape[d], {stride_of(in, d), stride_of(out, d)});
  }
  kept.close();
  reduced.close();
  const int pack = std::min<int>(8, static_cast<int>(16 / element_size(in.dtype)));
  const auto is_multiple = [&](int64_t stride) { return stride % pack == 0; };
  is_packed = reduced.rank == 1 && reduced.stride[0][0] == 1 && reduced.count % static_cast<uint64_t>(pack) == 0 &&
              in.offset % 16 == 0 && reinterpret_cast<uintptr_t>(in.buffer) % 16 == 0 &&
              std::all_of(kept.stride[0], kept.stride[0] + kept.rank, is_multiple);
  const bool is_contiguous = kept.rank == 0 || reduced.innermost_stride(0) < kept.innermost_stride(0);
  const uint64_t each = is_packed ? static_cast<uint64_t>(pack) : 1;
  team = choose_team(kept.count, reduced.count / each, is_contiguous);
  cut(static_cast<int>(each), multiprocessors);
}

// Into enough segments to fill the device, of which none is too short to be worth it or too long to be accurate.
void Reduction::cut(int pack, int multiprocessors) {
  const uint64_t length = reduced.count, groups = (kept.count + team.teams() - 1) / team.teams();
  const uint64_t at_once = uint64_t(team.size()) * static_cast<uint64_t>(pack);
  const uint64_t wanted = kBlocksEach * static_cast<uint64_t>(multiprocessors) / groups;
  const uint64_t most = std::max<uint64_t>(1, length / (at_once * kLeastEach));
  const uint64_t least = (length + at_once * kMostEach - 1) / (at_once * kMostEach);
  const uint64_t count = std::max(std::min(wanted, most), least);
  segment = (length + count - 1) / std::max<uint64_t>(1, count);
  segment = (segment + at_once - 1) / at_once * at_once;
  segments = (length + segment - 1) / segment;
}

Reduction second_pass(const Reduction& first) {
  Reduction second = first;
  second.reduced = {};
  second.reduced.add(static_cast<int64_t>(first.segments), {1});
  second.reduced.close();
  second.kept = {};
  int64_t above = static_cast<int64_t>(first.segments);
  for (uint32_t d = 0; d < first.kept.rank; ++d) {
    second.kept.add(first.kept.extent[d], {above, first.kept.stride[1][d]});
    above *= first.kept.extent[d];
  }
  second.kept.close();
  second.team = choose_team(second.kept.count, second.reduced.count, true);
  second.segment = first.segments;
  second.segments = 1;
  second.is_packed = false;
  return second;
}

}  // namespace plugrad::cuda
