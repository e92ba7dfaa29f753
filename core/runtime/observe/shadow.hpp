// PLUGRAD_SHADOW=DEVICE: each op of another device also runs on DEVICE, in host memory, and the results must agree.
// A divergence throws Error (internal) and leaves a case file; plugrad-conform --replay runs it alone.
#pragma once
#include <core/runtime/dispatch/dispatch.hpp>
#include <core/runtime/memory/host_copy.hpp>

#include <array>
#include <atomic>
#include <optional>

namespace plugrad::shadow {

inline constinit std::atomic<bool> on{false};
inline bool is_on() { return on.load(std::memory_order_relaxed); }

// Reads the environment, once.
void start();

// An op to run on both devices.
class Run {
 public:
  // Copies the inputs, before the op runs. Does nothing if the op runs on the shadow device itself.
  Run(DeviceState& device, const OpCall& call);
  // Runs the op on the shadow device and compares. Throws Error for the first differing element.
  void compare();

 private:
  bool reads(int operand) const;
  void compare_output(int output, const OpCall& moved);
  [[noreturn]] void diverged(int output, const std::string& how);
  std::string written_case() const;

  DeviceState& device_;
  const OpCall& call_;
  DeviceState* host_ = nullptr;
  std::array<std::optional<HostCopy>, PLUGRAD_MAX_OPERANDS> there_, before_;  // before_: in-out operands before the op
};

}  // namespace plugrad::shadow
