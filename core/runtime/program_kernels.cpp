#include <core/runtime/program_kernels.hpp>

#include <core/runtime/foreign.hpp>
#include <core/runtime/fork.hpp>

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

// What the plugin loads for its compiler must not change how this thread computes.
const plugrad_kernel* ask(const DeviceState& device, const plugrad_program& program) {
  std::fenv_t arithmetic;
  std::fegetenv(&arithmetic);
  const auto find = [&] { return programs_of(device)->kernel(device.handle, &program); };
  const plugrad_kernel* const found = contained_value(device.name, "the kernel of a program", find);
  std::fesetenv(&arithmetic);
  streams::guard_exit();
  if (found && (found->struct_size < sizeof *found || !found->run))
    throw_breach(device.name, "the kernel of a program has no function run");
  return found;
}
}  // namespace

const plugrad_programs* programs_of(const DeviceState& device) {
  const auto* found = static_cast<const plugrad_programs*>(extension_of(device.table, PLUGRAD_PROGRAMS));
  if (found && (found->struct_size < sizeof *found || !found->kernel))
    throw_breach(device.name, "the list of '" PLUGRAD_PROGRAMS "' is incomplete");
  return found;
}

const plugrad_kernel* program_kernel(DeviceState& device, std::span<const std::byte> program) {
  auto key = std::make_pair(static_cast<const DeviceState*>(&device),
                            std::string(reinterpret_cast<const char*>(program.data()), program.size()));
  {
    const std::lock_guard lock(kernels_mutex);
    if (const auto known = kernels().find(key); known != kernels().end()) return known->second;
  }
  const plugrad_kernel* const found = ask(device, *reinterpret_cast<const plugrad_program*>(program.data()));
  const std::lock_guard lock(kernels_mutex);
  return kernels().try_emplace(std::move(key), found).first->second;
}

}  // namespace plugrad
