// The shared state of all devices of this file: the clocks, since streams of any devices may wait for each other, and
// hazards.
#pragma once
#include <plugins/sim/clocks.hpp>

#include <plugrad/sdk/abi.h>

#include <mutex>
#include <string>

namespace plugrad::sim {

struct World {
  // Held while work is submitted and memory is allocated, and by a worker before it calls a host back; never while waiting,
  // computing or calling.
  std::mutex mutex;
  Clocks clocks;
  std::vector<plugrad_device*> devices;  // in the order of open
  std::vector<const void*> streams;      // all of them, by their native handles
  uint64_t hazards = 0;
  std::string last_hazard;

  void hazard(std::string why) {
    ++hazards;
    last_hazard = std::move(why);
  }
};
World& world();  // never destroyed: workers outlive main

}  // namespace plugrad::sim
