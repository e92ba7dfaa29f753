#include <core/runtime/memory/host_copy.hpp>

#include <core/runtime/dispatch/op_table.hpp>
#include <core/runtime/memory/small_blocks.hpp>
#include <core/runtime/memory/transfer.hpp>

namespace plugrad {

HostCopy::Span HostCopy::span_of(const plugrad_view& view, const Storage& storage) {
  int64_t low = 0, high = 0;
  for (int i = 0; i < view.rank; ++i) {
    const int64_t reach = view.strides[i] * (view.shape[i] - 1);
    (reach < 0 ? low : high) += reach;
  }
  const uint64_t size = dtype_size(view.dtype), first = static_cast<uint64_t>(-low) * size;
  return {view.offset - storage.offset - first, static_cast<uint64_t>(high - low + 1) * size, first};
}

HostCopy::HostCopy(DeviceState& host, const plugrad_view& view, Storage& home, bool read)
    : home_(home), span_(span_of(view, home)), storage_(allocate(host, span_.bytes, PLUGRAD_OP_COPY)), view_(view) {
  view_.buffer = storage_->buffer;
  view_.offset = storage_->offset + span_.first;
  const bool unaligned = view_.offset & (host.info.alignment - 1);
  view_.layout = static_cast<uint16_t>((view.layout & ~PLUGRAD_UNALIGNED) | (unaligned ? PLUGRAD_UNALIGNED : 0));
  if (read || view.layout & PLUGRAD_STRIDED) transfer::between(*storage_, 0, home_, span_.begin, span_.bytes);
}

void HostCopy::write_back() { transfer::between(home_, span_.begin, *storage_, 0, span_.bytes); }

}  // namespace plugrad
