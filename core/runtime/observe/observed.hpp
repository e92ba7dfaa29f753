// Events with a duration, for all watchers of the process: profilers, record_memory, the shadow device, checks of the
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
  // how: the way the op ran; empty if it did not run. Waits for the stream at a profiler's request. Returns whether the op
  // ran. Throws Error (internal) if the results of the shadow device differ.
  bool end(std::optional<How> how, StreamState* stream);

 private:
  const OpCall& call_;
  profiling::Scope timed_;
  std::optional<shadow::Run> second_;
  std::optional<process_check::Run> checked_;
};

// Names the op whose gradient this thread computes, for events inside.
using GradientOf = profiling::GradientOf;

// Data from elsewhere are about to be copied to a storage.
void copying_to(Storage& to);
// Notes that the core composes the op last declined on this thread.
void decomposed(DeviceState& device);
// Must be called before taking a lock of the allocator, if an Event is made under the lock.
inline void before_lock() {
  if (profiling::is_on()) [[unlikely]]
    profiling::join();
}
// Whether a watcher follows each op as the device runs it; then ops must run singly.
bool needs_each_op();
// Starts the watchers named in the environment, once.
void start();

}  // namespace plugrad::observe
