#include <plugins/sim/inner.hpp>

#include <plugrad/backends/reference.hpp>
#include <plugrad/sdk/backend.hpp>

#include <cstring>

namespace plugrad::sim {
namespace {
thread_local char last_message[256];

void keep(const plugrad_host*, plugrad_status, const char* message) {
  std::strncpy(last_message, message, sizeof last_message - 1);
}
void ignore(const plugrad_host*, uint32_t, const char*) {}
const void* nothing(const plugrad_host*, const char*) { return nullptr; }

constexpr plugrad_host kHost = {sizeof(plugrad_host), PLUGRAD_REVISION, plugrad_layouts, keep, ignore, nothing};

plugrad_device* open_inner(const plugrad_backend& table) {
  plugrad_device* device = nullptr;
  plugrad_device_info info{};
  info.struct_size = sizeof info;
  const plugrad_status status = table.open(&kHost, 0, nullptr, &device, &info);
  if (status != PLUGRAD_OK)
    throw BackendError(status, std::string("the reference device inside did not open: ") + last_message);
  return device;
}

struct Inner {
  const plugrad_backend& table = *plugrad_reference_backend(&kHost);
  plugrad_device* const device = open_inner(table);
};
const Inner& inner() {
  static const Inner opened;
  return opened;
}
}  // namespace

const plugrad_kernel* inner_kernel(const plugrad_signature& signature) {
  return inner().table.resolve(inner().device, &signature);
}

const plugrad_kernel* inner_fusion(const plugrad_fusion& fusion) {
  static const auto* const fusions = static_cast<const plugrad_fusions*>(inner().table.get_extension(PLUGRAD_FUSIONS));
  return fusions->kernel(inner().device, &fusion);
}

const char* inner_message() { return last_message; }

}  // namespace plugrad::sim
