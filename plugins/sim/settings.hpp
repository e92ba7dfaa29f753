// The parsed options of a device.
#pragma once
#include <plugrad/sdk/fusion.h>
#include <plugrad/sdk/backend.hpp>
#include <plugrad/sim.hpp>

namespace plugrad::sim {

struct Settings {
  uint32_t latency = 0;  // microseconds
  uint64_t memory = 0;
  uint32_t reach = PLUGRAD_FUSION_INSTRUCTIONS;  // of fusions with a head, in instructions
  uint16_t without_layouts = 0;
  uint32_t without_dtypes = 0;               // bits 1 << dtype
  std::vector<uint32_t> without_ops;         // opcodes
  uint64_t faults[PLUGRAD_SIM_FAULTS] = {};  // the n-th call; 0: none

  explicit Settings(const Options& options);  // throws INVALID
  // Whether the options leave this signature supported.
  bool leave(const plugrad_signature& signature) const;
};

}  // namespace plugrad::sim
