#include <plugrad/runtime/profiler.hpp>

#include <core/runtime/observe/profiling.hpp>
#include <core/runtime/observe/tracking.hpp>
#include <core/runtime/plugins/registry.hpp>
#include <plugrad/runtime/log.hpp>

#include <fstream>
#include <optional>
#include <utility>

namespace plugrad {
namespace {
// Creates a missing file, so that a wrong path is an error before the work begins.
void require_writable(const std::string& path) {
  if (path.empty() || std::ofstream(path, std::ios::app)) return;
  throw Error(Code::io_error, "[profiler] " + path + " cannot be written: choose a path in a folder that exists");
}
}  // namespace

Profiler::Profiler(const ProfilerOptions& options) {
  if (!options.limit) throw Error(Code::invalid, "[profiler] limit is 0: choose how many events to keep");
  require_writable(options.trace);
  session_ = profiling::start(options);
  for (DeviceState* each : Registry::get().opened()) each->allocator.sample();  // forgets the peaks of earlier work
  memory_ = options.memory && !tracking::is_on();
  if (memory_) tracking::start({});
}

Profiler::~Profiler() {
  try {
    stop();
  } catch (const std::exception& error) {
    log(LogLevel::error, error.what());
  }
  profiling::close(*session_);
}

void Profiler::stop() {
  if (!profiling::stop(*session_)) return;
  if (std::exchange(memory_, false)) tracking::stop();
  if (const std::string& trace = profiling::options_of(*session_).trace; !trace.empty()) save(trace);
}

std::vector<ProfileEvent> Profiler::events() const { return profiling::events_of(*session_); }
uint64_t Profiler::dropped() const { return profiling::dropped_of(*session_); }
std::vector<ProfileRow> Profiler::rows(const TableOptions& options) const { return profiling::rows_of(events(), options); }
std::string Profiler::table(const TableOptions& options) const { return profiling::table_of(events(), dropped(), options); }
void Profiler::save(const std::string& path) const { profiling::write_trace(path, events(), dropped()); }

// --- Ranges.

struct ProfileRange::State {
  explicit State(std::string&& given)
      : name(std::move(given)), outer(std::exchange(local().range, &name)), scope(EventKind::range, name.c_str(), nullptr) {}
  ~State() { local().range = outer; }

  const std::string name;
  const std::string* const outer;
  const profiling::Scope scope;
};

ProfileRange::ProfileRange() = default;
ProfileRange::ProfileRange(const std::string& name) {
  if (wanted()) open(name);
}
ProfileRange::~ProfileRange() = default;

bool ProfileRange::wanted() { return modes.load(std::memory_order_relaxed) & kObserved; }
void ProfileRange::open(std::string name) { state_ = std::make_unique<State>(std::move(name)); }

}  // namespace plugrad
