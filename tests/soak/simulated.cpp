#include <tests/soak/simulated.hpp>

#include <plugrad/runtime/error.hpp>
#include <plugrad/runtime/runtime.hpp>
#include <tests/paths.hpp>

namespace plugrad::test::simulated {

Device open(uint32_t index) {
  if (!has_device("sim")) load_plugin(test::test_plugin_path("libplugrad-backend-sim.so"));
  return Device("sim:" + std::to_string(index));
}

const plugrad_sim& sim() {
  static const auto* table = static_cast<const plugrad_sim*>(backend_extension("sim", "sim/0"));
  if (!table) throw Error(Code::unsupported, "[sim] the plugin lacks its extension sim/0");
  return *table;
}

plugrad_device* handle(uint32_t index) { return sim().device(index); }

uint64_t calls(uint32_t fault) { return fault == PLUGRAD_SIM_FULL ? sim().allocs(handle()) : sim().runs(handle(), 0); }

std::string last_hazard() {
  char text[512];
  sim().last_hazard(text, sizeof text);
  return text;
}

}  // namespace plugrad::test::simulated
