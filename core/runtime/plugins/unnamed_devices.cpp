// Devices used without a name: the default device, devices for fallbacks, and devices with memory of other libraries.
#include <core/runtime/plugins/foreign.hpp>
#include <core/runtime/plugins/registry.hpp>

#include <algorithm>
#include <atomic>
#include <functional>
#include <string_view>
#include <vector>

namespace plugrad {
namespace {
std::atomic<DeviceState*> chosen_device{nullptr};  // the default device, once somebody asked for it
}  // namespace

DeviceState* Registry::host_device(uint32_t use, const plugrad_backend* except, const char* extension) {
  const auto offers = [&](const Plugin& plugin) { return !extension || extension_of(plugin.table, extension); };
  const Locked lock(*this);
  search();
  std::vector<Plugin*> candidates;
  for (Plugin& plugin : plugins_)
    if (plugin.table.unnamed_use >= use && !plugin.table.stream_create && plugin.source != except && offers(plugin))
      candidates.push_back(&plugin);
  std::ranges::stable_sort(candidates, std::greater(), [](const Plugin* plugin) { return plugin->table.unnamed_use; });
  for (Plugin* plugin : candidates) {
    count(*plugin);
    if (!plugin->devices) continue;
    DeviceState& device = open(*plugin, 0);
    if (device.host_memory() && !device.compute) return &device;
  }
  return nullptr;
}

DeviceState* Registry::find_in(Plugin& plugin, int32_t type, int32_t index, bool may_open) {
  if (may_open) count(plugin);
  for (DeviceState* each : plugin.opened) {
    if (!each) continue;
    if (each->info.dlpack_type != type) return nullptr;
    if (each->info.dlpack_index == index) return each;
  }
  for (uint32_t n = 0; may_open && n < plugin.devices; ++n) {
    DeviceState& made = open(plugin, (static_cast<uint32_t>(index) + n) % plugin.devices);  // number `index` first
    if (made.info.dlpack_type != type) return nullptr;
    if (made.info.dlpack_index == index) return &made;
  }
  return nullptr;
}

DeviceState* Registry::find_at(int32_t type, int32_t index, const std::string& name) {
  DeviceState* const usual = chosen_device;
  if (usual && usual->info.dlpack_type == type && usual->info.dlpack_index == index) return usual;
  const Locked lock(*this);
  search();
  const auto named = [&](const Plugin& p) { return !name.empty() && std::string_view(p.table.name).starts_with(name); };
  const auto first = [&](auto wanted, bool may_open) -> DeviceState* {
    for (Plugin& plugin : plugins_)
      if (DeviceState* found = wanted(plugin) ? find_in(plugin, type, index, may_open) : nullptr) return found;
    return nullptr;
  };
  const auto all = [](const Plugin&) { return true; };
  if (DeviceState* found = first(named, true)) return found;
  if (DeviceState* found = first(all, false)) return found;
  return first(all, true);
}

DeviceState& Registry::default_device() {
  const Locked lock(*this);
  if (DeviceState* device = host_device(PLUGRAD_AS_DEFAULT, nullptr)) return *device;
  const std::string devices = all_devices();  // asks the plugins, and so comes first
  throw Error(Code::invalid, "[device] there is no default device: no plugin offers one in" + where_searched() +
                                 ". Name a device, or call set_default_device. Devices:" + devices);
}

Device default_device() {
  if (DeviceState* chosen = chosen_device) return Device(chosen);
  DeviceState& device = Registry::get().default_device();
  chosen_device = &device;
  return Device(&device);
}
void set_default_device(Device device) { chosen_device = device.defined() ? &device.state() : nullptr; }

}  // namespace plugrad
