#include <core/runtime/bounce.hpp>

#include <core/runtime/visitor.hpp>

#include <optional>

namespace plugrad {

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
