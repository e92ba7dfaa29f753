// A dense temporary operand in memory of its own.
#pragma once
#include <core/runtime/dispatch/dispatch.hpp>

namespace plugrad {

struct Dense {
  Ref<Storage> storage;
  plugrad_view view;

  Operand operand() const { return {view, storage.get()}; }
};

// Makes a dense operand with the shape and the dtype of `like`, for an op. Its elements are undefined.
inline Dense make_dense(DeviceState& device, const plugrad_view& like, uint32_t opcode) {
  Dense made{allocate(device, dense_bytes(opcode, like), opcode), like};
  made.view.buffer = made.storage->buffer;
  made.view.offset = made.storage->offset;
  set_dense(made.view, device.info.alignment);
  return made;
}

}  // namespace plugrad
