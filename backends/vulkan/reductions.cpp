// SUM, MAX, MIN and ARGMAX.
#include <backends/vulkan/grid.hpp>

namespace plugrad::vulkan {
namespace {

enum : uint32_t { kByInvocation = 0, kByGroup = 1, kOfPartials = 2 };

uint64_t chunks_of(const plugrad_view& to, const plugrad_view& from) {
  return (static_cast<uint64_t>(from.count / to.count) + kChunk - 1) / kChunk;
}

// Values, and for ARGMAX their places behind them.
uint64_t values_bytes(const Call& call) {
  const uint64_t size = element_size(call.op().opcode == PLUGRAD_OP_ARGMAX ? call.in(0).dtype : call.out().dtype);
  return (static_cast<uint64_t>(call.out().count) * chunks_of(call.out(), call.in(0)) * size + 15) / 16 * 16;
}

uint64_t workspace(const Call& call) {
  if (chunks_of(call.out(), call.in(0)) == 1) return 0;
  const bool has_places = call.op().opcode == PLUGRAD_OP_ARGMAX;
  return values_bytes(call) +
         (has_places ? static_cast<uint64_t>(call.out().count) * chunks_of(call.out(), call.in(0)) * sizeof(uint32_t) : 0);
}

// Adds an axis, the innermost first; joins it with the last reduced axis where the strides allow.
void add_axis(Fold& fold, uint32_t extent, int64_t to, int64_t from, bool is_reduced) {
  if (!is_reduced) {
    fold.kept_extent[fold.kept_rank] = extent;
    fold.kept_to[fold.kept_rank] = to;
    fold.kept_from[fold.kept_rank++] = from;
    fold.kept *= extent;
    return;
  }
  const uint32_t last = fold.reduced_rank - 1;
  fold.reduced *= extent;
  if (fold.reduced_rank && fold.reduced_from[last] * fold.reduced_extent[last] == from) {
    fold.reduced_extent[last] *= extent;
    return;
  }
  fold.reduced_extent[fold.reduced_rank] = extent;
  fold.reduced_from[fold.reduced_rank++] = from;
}

Fold fold_of(const Call& call) {
  const plugrad_view &to = call.out(), &from = call.in(0);
  Fold fold{};
  fold.to = reinterpret_cast<uint64_t>(data<char>(to));
  fold.from = reinterpret_cast<uint64_t>(data<char>(from));
  fold.partials = reinterpret_cast<uint64_t>(call.workspace());
  fold.places = fold.partials + values_bytes(call);
  fold.kept = fold.reduced = 1;
  fold.accumulates = call.accumulates();
  for (int d = from.rank - 1; d >= 0; --d)
    if (from.shape[d] != 1)
      add_axis(fold, static_cast<uint32_t>(from.shape[d]), to.strides[d], from.strides[d], to.shape[d] == 1);
  fold.span = kChunk;
  fold.chunks = static_cast<uint32_t>(chunks_of(to, from));
  return fold;
}

// The results of the workgroups, line by line.
Fold of_partials(Fold fold) {
  fold.reduced = fold.chunks;
  fold.chunks = 1;
  return fold;
}

void reduce(const Call& call) {
  if (call.in(0).count >> 31) throw BackendError(PLUGRAD_UNSUPPORTED, "a reduction takes fewer than 2^31 elements");
  const Fold fold = fold_of(call);
  const bool by_group = reduces_by_group(fold.kept, fold.reduced);
  auto& stream = call.stream<VulkanStream>();
  stream.demand_sound();
  const Recipe& recipe = call.own<Recipe>();
  VulkanStream::Recording recording(stream, call.op().number);
  const uint32_t groups = by_group ? std::min(fold.kept * fold.chunks, kMostGroups) : groups_for(fold.kept);
  recording.dispatch(recipe.of(by_group ? kByGroup : kByInvocation), fold, groups);
  if (fold.chunks > 1) {
    recording.barrier();
    recording.dispatch(recipe.of(kOfPartials), of_partials(fold), std::min(fold.kept, kMostGroups));
  }
  recording.finish();
}

constexpr uint16_t kInMemory = PLUGRAD_ALL_LAYOUTS & ~PLUGRAD_IMMEDIATE;
constexpr uint32_t kEveryMode = 7;

}  // namespace

void add_reduction_rows(RowList& list, const Abilities& abilities) {
  std::vector<uint8_t> dtypes = number_dtypes(abilities);
  for (const uint32_t op : {PLUGRAD_OP_MAX, PLUGRAD_OP_MIN, PLUGRAD_OP_ARGMAX})
    for (const uint8_t dtype : dtypes)
      list.add(with_workspace<workspace>(kernel<vulkan::reduce>(op, dtype, kInMemory)), "reduce" + suffix_of(dtype),
               kEveryMode);
  dtypes.push_back(PLUGRAD_BOOL);
  for (const uint8_t dtype : dtypes) {
    const bool widens = dtype == PLUGRAD_I32 || dtype == PLUGRAD_BOOL;
    const KernelRow row = kernel<vulkan::reduce>(PLUGRAD_OP_SUM, dtype, kInMemory, kPlainFlags | PLUGRAD_ACCUMULATE);
    list.add(with_workspace<workspace>(row), "reduce" + suffix_of(dtype) + (widens ? "_to_i64" : ""), kEveryMode);
  }
}

}  // namespace plugrad::vulkan
