// Where time and memory go: a Profiler records all events during its life.
//
//   Profiler profile({.trace = "trace.json"});
//   for (int step = 0; step < 3; ++step) {
//     const ProfileRange range("step");
//     train(batch);
//   }
//   std::cout << profile.table({.sort = ProfileSort::time, .rows = 10});
//   profile.stop();  // writes trace.json for chrome://tracing and ui.perfetto.dev
#pragma once
#include <plugrad/sdk/abi.h>
#include <plugrad/runtime/api.hpp>
#include <plugrad/runtime/device.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace plugrad {

namespace profiling {
struct Session;
}

struct ProfilerOptions {
  // The file for stop() to write, in Chrome's trace event format; if empty, stop() writes no file.
  std::string trace = {};
  // If true, a device with streams completes each op before the next op starts: an event's time is the time of the
  // device's work. If false, it is the time of the call on the host, and ProfileEvent::complete is false.
  bool synchronize = true;
  // Events beyond this number are dropped and counted. An event takes some 500 bytes.
  uint64_t limit = 1'000'000;
  // Whether origins of memory are recorded as well: see record_memory.
  bool memory = false;
};

enum class EventKind : uint8_t {
  op,          // an op of sdk/ops.md
  copy,        // between host and device, or between devices
  allocation,  // the plugin's alloc or free; the core serves most requests from its cache
  wait,        // the host waits for a device
  range,       // of a ProfileRange, or the call of a module
  gradient,    // a node of the graph computes the gradients of its operands
  exchange,    // the start of a collective; and the collective, on the thread that makes the communicator's calls
};

// How a device ran an op, in the order of the core's attempts.
enum class How : uint8_t {
  native,        // by the kernel for these layouts
  dense_copies,  // by a kernel for dense operands, on copies
  wider,         // by a kernel for a wider dtype, on converted operands
  decomposed,    // by other ops: their events follow this event, which takes no time
  host,          // in host memory, by another device
  parts,         // by ops on the parts of complex numbers: their events lie within this event
};
// "native", "dense copies", "wider dtype", "decomposed", "host", "parts"
PLUGRAD_API const char* how_name(How how);

struct ProfileOperand {
  const char* dtype = "";  // "f32"
  bool output = false;
  bool number = false;  // passed by value
  uint8_t rank = 0;
  std::array<int64_t, PLUGRAD_MAX_RANK> extents{};
  std::span<const int64_t> shape() const { return {extents.data(), rank}; }
};

// An action of a thread. The events of a thread nest.
struct ProfileEvent {
  EventKind kind = EventKind::op;
  How how = How::native;
  bool failed = false;   // it ended by an exception
  bool complete = true;  // the time includes the device's work
  uint32_t thread = 0;   // numbers from 0, in the order of the threads' first events
  uint32_t depth = 0;    // the number of events around it
  std::string name;      // "matmul"
  std::string gradient;  // the op whose gradient needed it, for example "relu"; empty outside of backward passes
  Device device;         // undefined for ranges and gradients
  int64_t begin = 0;     // nanoseconds since the profiler's construction
  int64_t duration = 0;  // nanoseconds, with the events inside
  int64_t self = 0;      // nanoseconds, without them
  uint64_t bytes = 0;    // of operands, read and written; of a copy or an allocation, its size
  uint64_t live = 0;     // bytes of the device in use at the end; 0 where they were not read
  uint64_t peak = 0;     // the most in use since the last event of the device; of a range, the largest inside
  std::vector<ProfileOperand> operands;  // outputs first
};

// The sum of similar events.
struct ProfileRow {
  EventKind kind = EventKind::op;
  How how = How::native;
  bool backward = false;
  std::string name, device;
  std::string shapes;  // "(8, 4) f32 <- (8, 2) f32, (2, 4) f32" if shapes were asked for
  uint64_t calls = 0;
  uint64_t fallbacks = 0;      // calls not run natively
  int64_t time = 0, self = 0;  // nanoseconds
  uint64_t bytes = 0, peak = 0;
};

enum class ProfileSort { time, bytes, calls, fallbacks };
struct TableOptions {
  ProfileSort sort = ProfileSort::time;  // the largest first; time: by ProfileRow::self
  size_t rows = 20;                      // at most
  bool shapes = false;                   // whether calls with different shapes are different rows
};

// Records the events of all threads from its construction to stop(). Only one profiler may record at a time. Recording costs
// about a microsecond for each op; without a profiler, ops cost nothing more.
class PLUGRAD_API Profiler {
 public:
  // Throws Error (invalid) if another profiler is recording or the limit is 0, (io_error) if the trace cannot be written.
  explicit Profiler(const ProfilerOptions& options = {});
  // Stops. Logs an error if the trace cannot be written.
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  // Ends the recording and writes the trace. Does nothing if it was called before. Throws Error (io_error).
  void stop();
  // All events so far, sorted by thread and begin. Any thread may call this while ops run.
  std::vector<ProfileEvent> events() const;
  // The number of events dropped at the limit.
  uint64_t dropped() const;
  // Sums of events of the same name, device, way of running and direction; ranges, by name, come last.
  std::vector<ProfileRow> rows(const TableOptions& options = {}) const;
  // The same as aligned text with a header and a line of totals.
  std::string table(const TableOptions& options = {}) const;
  // Writes all events so far in Chrome's trace event format. Throws Error (io_error).
  void save(const std::string& path) const;

 private:
  std::shared_ptr<profiling::Session> session_;
  bool memory_ = false;  // it switched record_memory on
};

// A named part of the program, on a single thread: an event around the events of its lifetime. Objects nest; destroy them
// in reverse order. Does nothing unless a profiler or record_memory records.
class PLUGRAD_API ProfileRange {
 public:
  explicit ProfileRange(const std::string& name);
  // name: called only if something records.
  template <class Name>
    requires requires(const Name& name) { std::string(name()); }
  explicit ProfileRange(const Name& name) : ProfileRange() {
    if (wanted()) open(name());
  }
  ~ProfileRange();
  ProfileRange(const ProfileRange&) = delete;
  ProfileRange& operator=(const ProfileRange&) = delete;

 private:
  struct State;
  ProfileRange();
  static bool wanted();
  void open(std::string name);
  std::unique_ptr<State> state_;
};

}  // namespace plugrad
