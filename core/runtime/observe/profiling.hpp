// The core's part of a Profiler's recording.
//
// A bit of `modes` makes every op leave the fast path, because the kernel tables of this path are then empty: see
// DeviceState::direct. Ops on the slow path, copies, allocations and waits make a Scope. A Scope costs a load and a branch
// unless a profiler records. Each thread appends to a log of its own.
#pragma once
#include <core/runtime/dispatch/dispatch.hpp>
#include <plugrad/runtime/profiler.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace plugrad::profiling {

class Log;

// The id of the recording session, or 0.
inline constinit std::atomic<uint64_t> current{0};
inline bool is_on() { return current.load(std::memory_order_relaxed) != 0; }

// Gives the calling thread a log of the recording session. Must be called before taking a lock of the allocator, if a Scope
// is made under the lock.
void join();

// An event, from construction to destruction.
class Scope {
 public:
  Scope(EventKind kind, const char* name, DeviceState* device, uint64_t bytes = 0) {
    if (is_on()) [[unlikely]]
      begin(kind, name, device, bytes);
  }
  // name: of the event, instead of the op's.
  Scope(DeviceState& device, const OpCall& call, const std::string& name = {}) {
    if (is_on()) [[unlikely]]
      begin(device, call, name);
  }
  ~Scope() {
    if (event_) [[unlikely]]
      finish();
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  void set_how(How how) {
    if (event_) event_->how = how;
  }
  // The event did not take place.
  void drop();
  // Waits until the device completed all work submitted to the stream, if the session has `synchronize`. `stream` may be
  // null.
  void complete(StreamState* stream);

 private:
  void begin(EventKind kind, const char* name, DeviceState* device, uint64_t bytes);
  void begin(DeviceState& device, const OpCall& call, const std::string& name);
  void begin(std::unique_ptr<ProfileEvent> event);
  void finish() noexcept;

  std::unique_ptr<ProfileEvent> event_;
  std::shared_ptr<Log> log_;
  int exceptions_ = 0;
};

// Records a decomposed op.
void note_decomposition(DeviceState& device, uint32_t opcode);

// Names the op whose gradient this thread computes, for events inside.
class GradientOf {
 public:
  explicit GradientOf(const char* name)
      : outer_(std::exchange(local().gradient_of, name)), scope_(EventKind::gradient, name, nullptr) {}
  ~GradientOf() { local().gradient_of = outer_; }
  GradientOf(const GradientOf&) = delete;
  GradientOf& operator=(const GradientOf&) = delete;

 private:
  const char* outer_;
  Scope scope_;
};

// The events of all threads, sorted by thread, begin and depth, with `self` and the peaks of ranges.
std::vector<ProfileEvent> events_of(const Session& session);
uint64_t dropped_of(const Session& session);

// Starts a session. Throws Error (invalid) if another session records.
std::shared_ptr<Session> start(const ProfilerOptions& options);
// Ends the recording of a session; its events stay. Returns whether it was recording.
bool stop(Session& session);
const ProfilerOptions& options_of(const Session& session);
// Drops the events.
void close(Session& session) noexcept;

// Writes a file in Chrome's trace event format. Throws Error (io_error).
void write_trace(const std::string& path, const std::vector<ProfileEvent>& events, uint64_t dropped);
std::vector<ProfileRow> rows_of(const std::vector<ProfileEvent>& events, const TableOptions& options);
std::string table_of(const std::vector<ProfileEvent>& events, uint64_t dropped, const TableOptions& options);
// "(8, 4) f32 <- (8, 2) f32, f32"; here the last operand is a number.
std::string shapes_text(const ProfileEvent& event);

}  // namespace plugrad::profiling
