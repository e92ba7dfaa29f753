// The records of plugrad-probe, written to the core through a pipe: a record before each step, and a record at the end.
#pragma once
#include <cstdint>

namespace plugrad::probe {

// In this order. A record names the beginning step, or, if `refused` is set, the failed step. `done` arrives when the
// process has run all destructors.
enum class Step : uint32_t { load, symbol, entry, count, open, exit, done };

struct Record {
  uint64_t nonce;  // the core's: code without the nonce cannot fake the probe's progress
  Step step;
  uint32_t refused;
  char reason[496];  // ends in 0
};
static_assert(sizeof(Record) == 512);  // a pipe takes it whole

// plugrad-probe DESCRIPTOR NONCE DEPTH PATH, and for the depth open: DEVICE, and the KEY and VALUE of each option
enum class Depth : uint32_t { load, count, open, communicator };

}  // namespace plugrad::probe
