#include <plugins/sim/checks.hpp>

namespace plugrad::sim {
namespace {
[[noreturn]] void refuse(const std::string& why) { throw BackendError(PLUGRAD_INVALID, why); }

struct Walk {  // element offsets of a view, and its required layout bits
  int64_t low = 0, high = 0, count = 1;
  uint16_t layout = 0;
};

Walk walk(const plugrad_view& view) {
  Walk w;
  for (int i = view.rank; i-- > 0;) {
    const int64_t extent = view.shape[i], stride = view.strides[i];
    if (extent < 1) refuse("a view with an extent of " + std::to_string(extent));
    if (extent == 1) continue;
    if (stride != w.count) w.layout |= PLUGRAD_STRIDED;
    if (stride == 0) w.layout |= PLUGRAD_BROADCAST;
    if (stride < 0) w.layout |= PLUGRAD_NEGATIVE;
    (stride < 0 ? w.low : w.high) += (extent - 1) * stride;
    w.count *= extent;
  }
  constexpr int64_t kWide = int64_t(1) << 31;
  if (w.high >= kWide || -w.low >= kWide || w.count > kWide - 1) w.layout |= PLUGRAD_WIDE_INDEX;
  return w;
}

bool same_elements(const plugrad_view& a, const plugrad_view& b) {
  if (a.offset != b.offset || a.dtype != b.dtype || a.rank != b.rank) return false;
  for (int i = 0; i < a.rank; ++i)
    if (a.shape[i] != b.shape[i] || (a.shape[i] > 1 && a.strides[i] != b.strides[i])) return false;
  return true;
}

bool overlap(const plugrad_op& op, const Range* ranges, int a, int b) {
  return op.views[a]->buffer && op.views[a]->buffer == op.views[b]->buffer && ranges[a].meets(ranges[b]);
}
}  // namespace

Range checked_range(const plugrad_view& view, uint64_t alignment) {
  const uint64_t size = element_size(view.dtype);
  if (!size) refuse("a view of dtype " + std::to_string(view.dtype));
  if (view.rank > PLUGRAD_MAX_RANK) refuse("a view of rank " + std::to_string(view.rank));
  if (is_immediate(view)) {
    if (view.buffer || view.rank || view.count != 1) refuse("an immediate with a buffer, a rank or a count that is not 1");
    return {};
  }
  Walk w = walk(view);
  if (view.offset % alignment) w.layout |= PLUGRAD_UNALIGNED;
  if (view.count != w.count)
    refuse("a view of " + std::to_string(w.count) + " elements whose count is " + std::to_string(view.count));
  if (w.layout & ~view.layout)
    refuse("a view whose layout bits " + std::to_string(view.layout) + " lack some of " + std::to_string(w.layout));
  if (view.offset % size) refuse("a view whose offset is no multiple of its elements' size");
  const int64_t first = static_cast<int64_t>(view.offset) + w.low * static_cast<int64_t>(size);
  if (first < 0) refuse("a view that begins before its buffer");
  return {static_cast<uint64_t>(first), view.offset + (w.high + 1) * size};
}

void check_overlap(const OpInfo* info, const plugrad_op& op, const Range* ranges) {
  for (int out = 0; out < op.outputs; ++out)
    for (int other = 0; other < op.outputs + op.inputs; ++other) {
      if (other == out || !overlap(op, ranges, out, other)) continue;
      const bool input = other >= op.outputs;
      const bool in_place = !info || info->works_in_place();
      if (input && in_place && same_elements(*op.views[out], *op.views[other])) continue;
      if ((op.views[out]->layout | op.views[other]->layout) & PLUGRAD_STRIDED) continue;
      refuse(std::string(info ? info->name : "FUSION") + ": output " + std::to_string(out) + " overlaps operand " +
             std::to_string(other));
    }
}

uint32_t fresh_outputs(const OpInfo& info, const plugrad_op& op, const Range* ranges) {
  uint32_t fresh = 0;
  for (int out = 0; out < op.outputs && !(op.flags & PLUGRAD_ACCUMULATE); ++out) {
    const bool read_too = info.is_in_out(out);
    bool shared = false;
    for (int other = op.outputs; other < op.outputs + op.inputs; ++other) shared |= overlap(op, ranges, out, other);
    if (!read_too && !shared && !(op.views[out]->layout & PLUGRAD_STRIDED)) fresh |= 1u << out;
  }
  return fresh;
}

}  // namespace plugrad::sim
