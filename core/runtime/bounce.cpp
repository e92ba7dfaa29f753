#include <core/runtime/bounce.hpp>

#include <core/runtime/transfer.hpp>

#include <optional>

namespace plugrad {
namespace {
// The bytes of a storage that a view reaches. Copying them needs no kernel of the device, whatever the view's layout.
struct Span {
  uint64_t begin, bytes;  // begin: from the start of the storage
  uint64_t first;         // offset of the view's first element from begin
};

Span span_of(const plugrad_view& view, const Storage& storage) {
  int64_t low = 0, high = 0;
  for (int i = 0; i < view.rank; ++i) {
    const int64_t reach = view.strides[i] * (view.shape[i] - 1);
    (reach < 0 ? low : high) += reach;
  }
  const uint64_t size = dtype_size(view.dtype), first = static_cast<uint64_t>(-low) * size;
  return {view.offset - storage.offset - first, static_cast<uint64_t>(high - low + 1) * size, first};
}

// An operand's copy on the host-memory device.
class Visitor {
 public:
  Visitor(DeviceState& host, const plugrad_view& view, Storage& home, bool read)
      : home_(home), span_(span_of(view, home)), storage_(allocate(host, span_.bytes)), view_(view) {
    view_.buffer = storage_->buffer;
    view_.offset = storage_->offset + span_.first;
    const bool unaligned = view_.offset & (host.info.alignment - 1);
    view_.layout = static_cast<uint16_t>((view.layout & ~PLUGRAD_UNALIGNED) | (unaligned ? PLUGRAD_UNALIGNED : 0));
    if (read || view.layout & PLUGRAD_STRIDED) transfer::between(*storage_, 0, home_, span_.begin, span_.bytes);
  }
  void go_home() { transfer::between(home_, span_.begin, *storage_, 0, span_.bytes); }
  const plugrad_view& view() const { return view_; }
  Storage* storage() const { return storage_.get(); }

 private:
  Storage& home_;
  Span span_;
  Ref<Storage> storage_;
  plugrad_view view_;
};
}  // namespace

bool bounce(DeviceState& host, const OpCall& call) {
  std::optional<Visitor> there[PLUGRAD_MAX_OPERANDS];
  const plugrad_view* views[PLUGRAD_MAX_OPERANDS];
  Storage* storages[PLUGRAD_MAX_OPERANDS];
  uint16_t layout = 0;
  for (int i = 0; i < call.operands(); ++i) {
    views[i] = call.views[i];
    storages[i] = nullptr;
    if (!(views[i]->layout & PLUGRAD_IMMEDIATE)) {
      there[i].emplace(host, *call.views[i], *call.storages[i], i >= call.outputs || is_in_out(call.opcode, i));
      views[i] = &there[i]->view();
      storages[i] = there[i]->storage();
    }
    layout |= views[i]->layout;
  }
  OpCall moved = call;
  moved.views = views;
  moved.storages = storages;
  if (!run_general(host, moved, layout)) return false;
  for (int i = 0; i < call.outputs; ++i) there[i]->go_home();
  return true;
}

}  // namespace plugrad
