#include <backends/cuda/reduction.hpp>

namespace plugrad::cuda {
namespace {

// The axes of a view sorted by stride, the smallest first; axes of stride 0 come last.
std::array<int, PLUGRAD_MAX_RANK> by_stride(const plugrad_view& view) {
  std::array<int, PLUGRAD_MAX_RANK> axes{};
  for (int i = 0; i < view.rank; ++i) axes[static_cast<size_t>(i)] = view.rank - 1 - i;
  std::stable_sort(axes.begin(), axes.begin() + view.rank,
                   [&](int a, int b) { return distance(stride_of(view, a)) < distance(stride_of(view, b)); });
  return axes;
}

template <int N> bool are_multiples(const Walk<N>& walk, uint32_t from, int64_t of) {
  return std::all_of(walk.stride[0] + from, walk.stride[0] + std::max(from, walk.rank),
                     [&](int64_t stride) { return stride % of == 0; });
}

template <int N> bool has_packs(const Walk<N>& walk, int64_t of) {
  return walk.rank > 0 && walk.stride[0][0] == 1 && walk.extent[0] % of == 0 && are_multiples(walk, 1, of);
}

}  // namespace

// Cuts lines into enough segments to fill the device, none of them too short to pay.
Segments::Segments(uint64_t of_lines, uint64_t its_length, Team its_team, uint64_t least, int multiprocessors)
    : lines(of_lines), length(its_length), team(its_team) {
  constexpr uint64_t kBlocksEach = 4;  // blocks per multiprocessor: at 64 bytes a thread, 64 KB are in flight
  const uint64_t wanted =
      groups() > CudaStream::kCounters ? 1 : kBlocksEach * static_cast<uint64_t>(multiprocessors) / groups();
  const uint64_t most = length / (team.size() * least);
  const uint64_t cuts = std::max<uint64_t>(1, std::min(wanted, most));
  size = (length + cuts - 1) / cuts;
  size = (size + team.size() - 1) / team.size() * team.size();
  per_line = static_cast<uint32_t>((length + size - 1) / size);
  tasks = static_cast<uint32_t>(groups() * per_line);
}

Reduction::Reduction(const Call& call, bool order_is_free)
    : Reduction(call.in(0), call.out(), order_is_free, call.backend<CudaBackend>().multiprocessors()) {
  accumulates = call.accumulates();
}

// An axis of extent 1 in both is ignored. ARGMAX counts the reduced axes in row-major order.
Reduction::Reduction(const plugrad_view& in, const plugrad_view& out, bool order_is_free, int multiprocessors)
    : accumulates(false) {
  const auto axes = by_stride(in);
  for (int i = 0; i < in.rank; ++i) {
    const int close = axes[static_cast<size_t>(i)], last = order_is_free ? close : in.rank - 1 - i;
    if (out.shape[close] != 1) kept.add(in.shape[close], {stride_of(in, close), stride_of(out, close)});
    if (out.shape[last] == 1) reduced.add(in.shape[last], {stride_of(in, last)});
  }
  const bool is_contiguous = distance(reduced.innermost_stride(0)) < distance(kept.innermost_stride(0));
  pack(in);
  kept.close();
  reduced.close();
  constexpr uint64_t kLeastEach = 4;
  const Team team = choose_team(kept.count, reduced.count, is_contiguous || kept.rank == 0);
  segments = Segments(kept.count, reduced.count, team, kLeastEach, multiprocessors);
}

void Reduction::pack(const plugrad_view& in) {
  const int64_t size = static_cast<int64_t>(element_size(in.dtype)), each = std::min<int64_t>(8, 16 / size);
  if (reinterpret_cast<uintptr_t>(data<char>(in)) % static_cast<uint64_t>(each * size)) return;
  if (has_packs(reduced, each) && are_multiples(kept, 0, each)) {
    packing = Packing::along;
    reduced.pack(each);
  } else if (has_packs(kept, each) && are_multiples(reduced, 0, each)) {
    packing = Packing::across;
    out_step = kept.stride[1][0];
    kept.pack(each);
  }
}

}  // namespace plugrad::cuda
