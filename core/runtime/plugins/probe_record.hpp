// What plugrad-probe writes to the core through a pipe: a record before each step, and one at the end.
#pragma once
#include <cstdint>

namespace plugrad::probe {

// In this order. A record names the step that begins, or, if `refused` is set, the one that the plugin fails. `done` arrives
// when the process has run all destructors.
enum class Step : uint32_t { load, symbol, entry, count, open, exit, done };

struct Record {
  uint64_t nonce;  // the core's: code that does not know it cannot pretend that the probe came this far
  Step step;
  uint32_t refused;
  char reason[496];  // ends in 0
};
static_assert(sizeof(Record) == 512);  // a pipe takes it whole

// plugrad-probe DESCRIPTOR NONCE DEPTH PATH, and for the depth open: DEVICE, and the KEY and VALUE of each option
enum class Depth : uint32_t { load, count, open };

}  // namespace plugrad::probe
