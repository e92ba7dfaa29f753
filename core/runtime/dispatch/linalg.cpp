#include <core/runtime/dispatch/linalg.hpp>

#include <core/runtime/observe/observer.hpp>
#include <core/runtime/plugins/foreign.hpp>
#include <core/runtime/plugins/registry.hpp>
#include <plugrad/runtime/log.hpp>
#include <plugrad/runtime/policy.hpp>

namespace plugrad::linear_algebra {
namespace {

[[noreturn]] void throw_unsupported(const DeviceState& device, const std::string& what) {
  throw Error(Code::unsupported, "[" + what + "] " + device.name + " cannot factor matrices, because its plugin has no '" +
                                     PLUGRAD_LINALG +
                                     "'. Use a device that has it, such as one in host memory, or set_fallback "
                                     "(PLUGRAD_FALLBACK=allow) to compute it there");
}

}  // namespace

const plugrad_linalg* find(const DeviceState& device) {
  if (!device.host_memory() || device.compute) return nullptr;
  const void* found = extension_of(device.table, PLUGRAD_LINALG);
  const auto* linalg = static_cast<const plugrad_linalg*>(found);
  if (!linalg) return nullptr;
  if (linalg->struct_size < sizeof *linalg || !linalg->lu || !linalg->swap_rows || !linalg->solve_triangular ||
      !linalg->cholesky || !linalg->qr || !linalg->eigh || !linalg->svd)
    throw Error(Code::invalid,
                "[" + device.name + "] its plugin breaks the contract: a function of '" PLUGRAD_LINALG "' is missing");
  return linalg;
}

DeviceState& device_for(DeviceState& device, const std::string& what) {
  device.require_open();
  if (find(device)) return device;
  observe::unrepeatable(("factors a matrix on another device (" + what + ")").c_str(), "call it outside");
  if (fallback() == Fallback::error) throw_unsupported(device, what);
  DeviceState* host = Registry::get().host_device(PLUGRAD_AS_FALLBACK, device.source, PLUGRAD_LINALG);
  if (!host || !find(*host)) throw_unsupported(device, what);
  ++device.host_fallbacks;
  if (fallback() == Fallback::warn)
    log(LogLevel::warning, what + " cannot run on " + device.name + ": running it on " + host->name);
  return *host;
}

}  // namespace plugrad::linear_algebra
