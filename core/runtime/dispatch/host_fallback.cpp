#include <core/runtime/dispatch/host_fallback.hpp>

#include <core/runtime/memory/host_copy.hpp>

#include <optional>

namespace plugrad {

bool run_on_host(DeviceState& host, const OpCall& call) {
  std::optional<HostCopy> there[PLUGRAD_MAX_OPERANDS];
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
  for (int i = 0; i < call.outputs; ++i) there[i]->write_back();
  return true;
}

}  // namespace plugrad
