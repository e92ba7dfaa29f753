// PLUGRAD_CHECK=process: after each op, the core undoes a kernel's changes to the process, and a warning names the op and
// the device. The check costs about 60 us for each op, and so is off by default.
#pragma once
#include <core/runtime/device_state.hpp>
#include <process/process_state.hpp>

#include <atomic>
#include <cstdint>

namespace plugrad::process_check {

inline constinit std::atomic<bool> on{false};
inline bool is_on() { return on.load(std::memory_order_relaxed); }

// Reads the environment, once. Throws Error (invalid) for unknown values.
void start();

// The check of an op.
class Run {
 public:
  Run(const DeviceState& device, uint32_t opcode) : device_(device), opcode_(opcode) {}
  ~Run();
  Run(const Run&) = delete;

 private:
  const DeviceState& device_;
  const uint32_t opcode_;
  ProcessState before_;
};

}  // namespace plugrad::process_check
