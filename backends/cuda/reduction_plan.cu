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

// An axis of extent 1 in both is ignored. ARGMAX counts the reduced axes in row-major order.
Reduction::Reduction(const Call& call, bool order_is_free) : accumulates(call.accumulates()) {
  const plugrad_view &in = call.in(0), &out = call.out();
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
  team = choose_team(kept.count, reduced.count, is_contiguous || kept.rank == 0);
  cut(call.backend<CudaBackend>().multiprocessors());
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

// Cuts lines into enough segments to fill the device, none of them too short to pay.
void Reduction::cut(int multiprocessors) {
  const uint64_t wanted =
      groups() > CudaStream::kCounters ? 1 : kBlocksEach * static_cast<uint64_t>(multiprocessors) / groups();
  const uint64_t most = reduced.count / (team.size() * kLeastEach);
  const uint64_t count = std::max<uint64_t>(1, std::min(wanted, most));
  segment = (reduced.count + count - 1) / count;
  segment = (segment + team.size() - 1) / team.size() * team.size();
  segments = static_cast<uint32_t>((reduced.count + segment - 1) / segment);
  tasks = static_cast<uint32_t>(groups() * segments);
}

}  // namespace plugrad::cuda
