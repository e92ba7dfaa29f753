#include <backends/cuda/fusion_plan.hpp>

#include <backends/cuda/reduction.hpp>

#include <algorithm>
#include <array>
#include <cstdint>

namespace plugrad::cuda {
namespace {

using Space = std::array<int64_t, PLUGRAD_MAX_RANK>;

[[noreturn]] void decline(const char* why) { throw BackendError(PLUGRAD_UNSUPPORTED, why); }

// A dense view of the space, with extent 1 along some axes. Its address is 0, as aligned as any.
plugrad_view dense(const Space& space, int rank, unsigned without, uint8_t dtype) {
  plugrad_view view{};
  view.dtype = dtype;
  view.rank = static_cast<uint8_t>(rank);
  view.count = 1;
  for (int d = rank; d-- > 0;) {
    view.shape[d] = without >> d & 1 ? 1 : space[static_cast<size_t>(d)];
    view.strides[d] = view.count;
    view.count *= view.shape[d];
  }
  return view;
}

Reduction reduction_of(const plugrad_op& op, const FusionSource& source, int multiprocessors) {
  const int rank = op.views[0]->rank;
  const Space space = space_of(op, rank);
  return Reduction(dense(space, rank, 0, source.reduced_dtype), dense(space, rank, source.reduced_axes, op.views[0]->dtype),
                   true, multiprocessors);
}

// The axes of a fusion's operands, in the order of the reduction's own.
struct Walks {
  Walk<kFusionSlots> kept, reduced;

  Walks(const plugrad_op& op, unsigned reduced_axes) {
    const int rank = op.views[0]->rank;
    const Space space = space_of(op, rank);
    for (int d = rank; d-- > 0;) {
      int64_t strides[kFusionSlots] = {};
      for (int k = 0; k < op.outputs + op.inputs; ++k)
        if (!is_immediate(*op.views[k])) strides[k] = stride_of(*op.views[k], d);
      (reduced_axes >> d & 1 ? reduced : kept).add(space[static_cast<size_t>(d)], strides);
    }
  }
  // How far element offsets reach.
  int64_t reach(int k) const {
    int64_t all = 0;
    for (const Walk<kFusionSlots>* each : {&kept, &reduced})
      for (uint32_t d = 0; d < each->rank; ++d) all += each->stride[k][d] * (each->extent[d] - 1);
    return all;
  }
  bool has_packs(int k, const Walk<kFusionSlots>& packed, int pack, const plugrad_view& view) const {
    const int64_t stride = packed.innermost_stride(k);
    if (stride == 0) return true;  // one element serves the whole pack
    const auto bytes = static_cast<uint64_t>(pack) * element_size(view.dtype);
    if (stride != 1 || reinterpret_cast<uintptr_t>(data<char>(view)) % bytes) return false;
    for (const Walk<kFusionSlots>* each : {&kept, &reduced})
      for (uint32_t d = each == &packed; d < each->rank; ++d)
        if (each->stride[k][d] % pack) return false;
    return true;
  }
};

Axes<kFusionSlots> axes_of(const Walk<kFusionSlots>& walk) {
  Axes<kFusionSlots> axes{};
  axes.rank = std::max(walk.rank, 1u);  // without axes, one of extent 1
  for (uint32_t d = 0; d < walk.rank; ++d) {
    if (d + 1 < walk.rank) axes.extent[d] = Divider(static_cast<uint32_t>(walk.extent[d]));
    for (int k = 0; k < kFusionSlots; ++k) axes.stride[k][d] = static_cast<int32_t>(walk.stride[k][d]);
  }
  return axes;
}

}  // namespace

FusionPlan::FusionPlan(const plugrad_op& op, const FusionSource& source, int multiprocessors) {
  const Reduction reduction = reduction_of(op, source, multiprocessors);
  Walks walks(op, source.reduced_axes);
  if (walks.kept.count * walks.reduced.count > static_cast<uint64_t>(kSpan)) decline("the fusion has too many elements");
  by_packs = reduction.packing != Packing::none;
  const bool packs_along = source.reduced_axes >> (op.views[0]->rank - 1) & 1;
  if (by_packs && packs_along != (reduction.packing == Packing::along)) decline("the fusion's last axis has one element");
  Walk<kFusionSlots>& packed = reduction.packing == Packing::across ? walks.kept : walks.reduced;
  if (by_packs && packed.extent[0] % source.pack) decline("the fusion's rows are no whole packs");
  for (int k = 0; k < op.outputs + op.inputs; ++k) {
    const plugrad_view& view = *op.views[k];
    const bool is_of_lines = source.line_outputs >> k & 1;
    if (walks.reach(k) > kSpan) decline("an operand of the fusion reaches too far");
    if (by_packs && !is_of_lines && !walks.has_packs(k, packed, source.pack, view)) decline("an operand has no packs");
    Memories<kFusionSlots>& memories = argument.memories;
    memories.base[k] = is_immediate(view) ? nullptr : data<const char>(view);
    memories.value[k] = is_immediate(view) ? immediate_bits(view) : 0;
    memories.vectors |= static_cast<uint32_t>(packed.innermost_stride(k) == 1) << k;
  }
  if (by_packs) packed.pack(source.pack);
  argument.kept = axes_of(walks.kept);
  argument.reduced = axes_of(walks.reduced);
  argument.segments = reduction.segments;
  blocks = reduction.segments.tasks / (source.goes_on ? reduction.segments.per_line : 1);
}

uint64_t fusion_workspace(const plugrad_op& op, const FusionSource& source, int multiprocessors) {
  if (source.goes_on) return 0;
  const Reduction reduction = reduction_of(op, source, multiprocessors);
  return reduction.segments.partials() * source.set_bytes[reduction.packing != Packing::none];
}

}  // namespace plugrad::cuda
