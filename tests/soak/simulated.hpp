// The simulated device, opened as by a program, and the table of functions that make calls on it fail.
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
// Returns how many of the calls that a fault counts have succeeded on the first device.
uint64_t calls(uint32_t fault);
std::string last_hazard();

}  // namespace plugrad::test::simulated
