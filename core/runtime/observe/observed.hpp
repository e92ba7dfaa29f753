// Events with a duration, for everybody who watches the process: profilers, record_memory, the shadow device, checks of the
// process. observer.hpp has the events without a duration.
#pragma once
#include <core/runtime/observe/observer.hpp>
#include <core/runtime/observe/profiling.hpp>
#include <core/runtime/observe/shadow.hpp>
#include <core/runtime/plugins/process_check.hpp>

#include <optional>

namespace plugrad::observe {

// A copy, a wait, an allocation or a release of a device's memory, a factorisation.
using Event = profiling::Scope;

// An op, from before it runs until it has run: on its device, or on the host in the device's place.
class Op {
 public:
  enum class By { device, host };
  Op(DeviceState& device, const OpCall& call, By by = By::device);
  // how: the way in which the op ran; empty if it did not run. Waits for the stream if a profiler asks for that. Returns
  // whether the op ran. Throws Error (internal) if the shadow device has other results.
  bool end(std::optional<How> how, StreamState* stream);

 private:
  const OpCall& call_;
  profiling::Scope timed_;
  std::optional<shadow::Run> second_;
  std::optional<process_check::Run> checked_;
};

// Says which op's gradient this thread computes, for events inside.
using GradientOf = profiling::GradientOf;

// Data from elsewhere are about to be copied to a storage.
void copying_to(Storage& to);
// The core composes an op that a device declined.
void decomposed(DeviceState& device);
// Must be called before a lock of the allocator is taken under which an Event is made.
inline void before_lock() {
  if (profiling::is_on()) [[unlikely]]
    profiling::join();
}
// Whether somebody looks at each op as the device runs it, so that ops must run one by one.
bool needs_each_op();
// Reads what the environment asks for, once.
void start();

}  // namespace plugrad::observe
