// The table of the plugin, and the extension "sim/0", by which tests control the plugin.
#include <plugins/sim/device.hpp>

#include <string_view>

namespace plugrad::sim {
namespace {

template <class F> void for_devices(plugrad_device* device, F each) {
  const std::lock_guard lock(world().mutex);
  for (plugrad_device* d : world().devices)
    if (!device || d == device) each(backend_of<Sim>(d));
}
template <class F> uint64_t sum_over(plugrad_device* device, F of) {
  uint64_t sum = 0;
  for_devices(device, [&](Sim& sim) { sum += of(sim); });
  return sum;
}

uint64_t hazards() {
  const std::lock_guard lock(world().mutex);
  return world().hazards;
}
void last_hazard(char* text, uint64_t bytes) {
  const std::lock_guard lock(world().mutex);
  if (bytes) text[world().last_hazard.copy(text, bytes - 1)] = 0;
}
plugrad_device* device_of_index(uint32_t index) {
  const std::lock_guard lock(world().mutex);
  plugrad_device* last = nullptr;
  for (plugrad_device* d : world().devices)
    if (backend_of<Sim>(d).index() == index) last = d;
  return last;
}
uint64_t runs(plugrad_device* device, uint32_t opcode) {
  return sum_over(device, [&](Sim& sim) {
    const Counters& c = sim.counters();
    if (opcode == PLUGRAD_FUSION) return c.fusions;
    return !opcode ? c.runs : opcode < c.by_opcode.size() ? c.by_opcode[opcode] : 0;
  });
}
uint64_t copies(plugrad_device* device) {
  return sum_over(device, [](Sim& sim) { return sim.counters().copies; });
}
uint64_t lists(plugrad_device* device) {
  return sum_over(device, [](Sim& sim) { return sim.counters().lists; });
}
uint64_t batches(plugrad_device* device) {
  return sum_over(device, [](Sim& sim) { return sim.counters().batches; });
}
uint64_t allocs(plugrad_device* device) {
  return sum_over(device, [](Sim& sim) { return sim.counters().allocs; });
}
uint64_t allocated(plugrad_device* device) {
  return sum_over(device, [](Sim& sim) { return sim.allocated(); });
}
void set_latency(plugrad_device* device, uint32_t micros) {
  for_devices(device, [&](Sim& sim) { sim.conditions().latency = micros; });
}
void arm(plugrad_device* device, uint32_t fault, uint64_t n) {
  if (fault < PLUGRAD_SIM_FAULTS) for_devices(device, [&](Sim& sim) { sim.arm(fault, n); });
}
void hold(plugrad_device* device, uint32_t roles) {
  for_devices(device, [&](Sim& sim) { sim.conditions().hold(roles); });
}

constexpr plugrad_sim kExtension = {
    sizeof(plugrad_sim), 0,           hazards, last_hazard, device_of_index, runs,   copies, allocs,
    allocated,           set_latency, arm,     hold,        lists,           batches};

plugrad_status open(const plugrad_host* host, uint32_t index, const plugrad_options* options, plugrad_device** device,
                    plugrad_device_info* info) noexcept {
  const plugrad_status status = open_device<Sim>(host, index, options, device, info);
  if (status != PLUGRAD_OK) return status;
  return guarded(host, [&] {
    const std::lock_guard lock(world().mutex);
    world().devices.push_back(*device);
  });
}

// Returns the kernel of the reference backend, unless an option removes it; sim has no rows of its own.
const plugrad_kernel* resolve(plugrad_device* device, const plugrad_signature* signature) noexcept {
  try {
    return backend_of<Sim>(device).resolve(*signature);
  } catch (...) {
    return nullptr;
  }
}

const plugrad_kernel* fusion_kernel(plugrad_device* device, const plugrad_fusion* fusion) noexcept {
  try {
    return backend_of<Sim>(device).fusion_kernel(*fusion);
  } catch (...) {
    return nullptr;
  }
}
uint32_t fusion_reach(plugrad_device* device, const plugrad_fusion* fusion) noexcept {
  return std::min<uint32_t>(fusion->instructions, backend_of<Sim>(device).fusion_reach());
}
constexpr uint32_t kContents = PLUGRAD_FUSION_REDUCTIONS | PLUGRAD_FUSION_ROWS | PLUGRAD_FUSION_UPDATES |
                               PLUGRAD_FUSION_PRODUCTS | PLUGRAD_FUSION_NORMS | PLUGRAD_FUSION_ATTENTION;
constexpr plugrad_fusions kFusions = {sizeof(plugrad_fusions), kContents,    65536, INT64_MAX,
                                      fusion_kernel,           fusion_reach, 65536};

constexpr plugrad_backend table() {
  plugrad_backend t = backend_table<Sim>("sim", "0");
  t.open = open;
  t.resolve = resolve;
  return t;
}
constexpr plugrad_backend kTable = table();
}  // namespace

const void* Sim::extension(std::string_view name) noexcept {
  if (name == PLUGRAD_FUSIONS) return &kFusions;
  if (name == PLUGRAD_LISTS) return &kLists<Sim>;
  return name == "sim/0" ? &kExtension : nullptr;
}

const plugrad_backend* sim_table() { return &kTable; }

}  // namespace plugrad::sim

extern "C" const plugrad_backend* plugrad_sim_backend(const plugrad_host*) { return plugrad::sim::sim_table(); }
