// A copy of an operand on a host-memory device, so that another device can compute with it.
#pragma once
#include <core/runtime/device_state.hpp>
#include <core/runtime/memory/storage.hpp>

#include <cstdint>

namespace plugrad {

// Copying needs no kernel of either device, for any layout of the view: it copies all bytes within the view's reach.
class HostCopy {
 public:
  // The bytes within a view's reach.
  struct Span {
    uint64_t begin, bytes;  // begin: from the start of the storage
    uint64_t first;         // offset of the view's first element from begin
  };
  static Span span_of(const plugrad_view& view, const Storage& storage);

  // read: whether the operand's values are wanted. An output with gaps is copied too, so that write_back preserves the gaps.
  HostCopy(DeviceState& host, const plugrad_view& view, Storage& home, bool read);
  // Copies the bytes back.
  void write_back();
  const plugrad_view& view() const { return view_; }
  Storage* storage() const { return storage_.get(); }

 private:
  Storage& home_;
  Span span_;
  Ref<Storage> storage_;
  plugrad_view view_;
};

}  // namespace plugrad
