#include <core/runtime/dispatch/fusion_kernels.hpp>

#include <core/runtime/fork.hpp>
#include <core/runtime/plugins/foreign.hpp>

#include <algorithm>
#include <cfenv>
#include <cstring>
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

// Calls the plugin. Libraries that it loads for its compiler must not change how this thread computes.
template <class Call> auto asked(const DeviceState& device, const char* what, Call call) {
  std::fenv_t arithmetic;
  std::fegetenv(&arithmetic);
  const auto answer = contained_value(device.name, what, call);
  std::fesetenv(&arithmetic);
  streams::guard_exit();
  return answer;
}

const plugrad_kernel* ask(const DeviceState& device, const plugrad_fusion& fusion) {
  const plugrad_kernel* const found =
      asked(device, "the kernel of a fusion", [&] { return fusions_of(device)->kernel(device.handle, &fusion); });
  if (found && (found->struct_size < sizeof *found || !found->run))
    throw_breach(device.name, "the kernel of a fusion has no function run");
  return found;
}
}  // namespace

std::optional<plugrad_fusions> fusions_of(const DeviceState& device) {
  const auto* found = static_cast<const plugrad_fusions*>(extension_of(device.table, PLUGRAD_FUSIONS));
  if (!found) return {};
  if (found->struct_size < offsetof(plugrad_fusions, reach) || !found->kernel)
    throw_breach(device.name, "the list of '" PLUGRAD_FUSIONS "' is incomplete");
  plugrad_fusions known{};
  std::memcpy(&known, found, std::min<size_t>(found->struct_size, sizeof known));
  return known;
}

size_t fusion_reach(DeviceState& device, std::span<const std::byte> bytes) {
  const auto& fusion = *reinterpret_cast<const plugrad_fusion*>(bytes.data());
  const plugrad_fusions offered = *fusions_of(device);
  if (!offered.reach) return fusion.instructions;
  return asked(device, "the reach of a fusion", [&] { return offered.reach(device.handle, &fusion); });
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
