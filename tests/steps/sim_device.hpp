// A fixture for compiled steps and optimisers on the device of sim. Hazards that sim reports are failures.
#pragma once
#include <tests/steps/twins.hpp>

#include <plugrad/sim.hpp>
#include <tests/paths.hpp>

namespace plugrad::test {

class SimDevice : public ::testing::Test {
 protected:
  SimDevice() {
    load_plugin(test::test_plugin_path("libplugrad-backend-sim.so"));
    set_default_device(Device("sim"));
    sim = static_cast<const plugrad_sim*>(backend_extension("sim", "sim/0"));
  }
  ~SimDevice() override {
    char text[512];
    sim->last_hazard(text, sizeof text);
    EXPECT_EQ(sim->hazards(), 0u) << text;
  }
  plugrad_device* handle() const { return sim->device(0); }

  const plugrad_sim* sim = nullptr;
};

}  // namespace plugrad::test
