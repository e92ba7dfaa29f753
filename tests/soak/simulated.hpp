// The simulated device, opened by the core as programs do, and the table that lets things fail on it.
#pragma once
#include <plugrad/runtime/device.hpp>
#include <plugrad/sim.hpp>

#include <cstdint>
#include <string>

namespace plugrad::test::simulated {

// Loads the plugin, and opens a device on which work takes no time.
Device open(uint32_t index = 0);
const plugrad_sim& sim();
plugrad_device* handle(uint32_t index = 0);
// The calls that a fault counts and that succeeded, on the first device.
uint64_t calls(uint32_t fault);
std::string last_hazard();

}  // namespace plugrad::test::simulated
