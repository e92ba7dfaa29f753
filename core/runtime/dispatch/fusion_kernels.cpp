#include <core/runtime/dispatch/fusion_kernels.hpp>

#include <core/runtime/fork.hpp>
#include <core/runtime/plugins/foreign.hpp>

#include <cfenv>
#include <map>
#include <string>
#include <utility>

namespace plugrad {
namespace {
ForkMutex kernels_mutex;
using Known = std::map<std::pair<const DeviceState*, std::string>, const plugrad_kernel*>;
Known& kernels() {  // kernels_mutex held
  static Known& all = *new Known;
  return all;
}

// Libraries loaded by the plugin for its compiler must not change how this thread computes.
const plugrad_kernel* ask(const DeviceState& device, const plugrad_fusion& fusion) {
  std::fenv_t arithmetic;
  std::fegetenv(&arithmetic);
  const auto find = [&] { return fusions_of(device)->kernel(device.handle, &fusion); };
  const plugrad_kernel* const found = contained_value(device.name, "the kernel of a fusion", find);
  std::fesetenv(&arithmetic);
  streams::guard_exit();
  if (found && (found->struct_size < sizeof *found || !found->run))
    throw_breach(device.name, "the kernel of a fusion has no function run");
  return found;
}
}  // namespace

const plugrad_fusions* fusions_of(const DeviceState& device) {
  const auto* found = static_cast<const plugrad_fusions*>(extension_of(device.table, PLUGRAD_FUSIONS));
  if (found && (found->struct_size < sizeof *found || !found->kernel))
    throw_breach(device.name, "the list of '" PLUGRAD_FUSIONS "' is incomplete");
  return found;
}

size_t fusion_reach(DeviceState& device, std::span<const std::byte> bytes) {
  const auto& fusion = *reinterpret_cast<const plugrad_fusion*>(bytes.data());
  const plugrad_fusions& offered = *fusions_of(device);
  if (!offered.reach) return fusion.instructions;
  const auto ask = [&] { return offered.reach(device.handle, &fusion); };
  return contained_value(device.name, "the reach of a fusion", ask);
}

const plugrad_kernel* fusion_kernel(DeviceState& device, std::span<const std::byte> fusion) {
  auto key = std::make_pair(static_cast<const DeviceState*>(&device),
                            std::string(reinterpret_cast<const char*>(fusion.data()), fusion.size()));
  {
    const std::lock_guard lock(kernels_mutex);
    if (const auto known = kernels().find(key); known != kernels().end()) return known->second;
  }
  const plugrad_kernel* const found = ask(device, *reinterpret_cast<const plugrad_fusion*>(fusion.data()));
  const std::lock_guard lock(kernels_mutex);
  return kernels().try_emplace(std::move(key), found).first->second;
}

}  // namespace plugrad
