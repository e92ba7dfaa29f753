#include <core/runtime/observe/profiling.hpp>

#include <core/runtime/fork.hpp>
#include <core/runtime/observe/observer.hpp>
#include <core/runtime/plugins/foreign.hpp>

#include <algorithm>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <tuple>

namespace plugrad {

std::mutex& recorder_mutex() {
  static std::mutex& m = *new std::mutex;
  return m;
}

namespace profiling {
namespace {
using Clock = std::chrono::steady_clock;
}  // namespace

// The events of a thread in a session.
class Log {
 public:
  Log(std::shared_ptr<const Session> of, uint32_t number) : session(std::move(of)), thread(number) {}
  const std::shared_ptr<const Session> session;
  const uint32_t thread;
  uint32_t depth = 0;  // of the appending thread

  std::mutex mutex;  // guards `events`
  std::deque<ProfileEvent> events;
};

struct Session {
  Session(const ProfilerOptions& given, uint64_t number) : options(given), id(number) {}
  const ProfilerOptions options;
  const uint64_t id;
  const Clock::time_point start = Clock::now();
  std::atomic<bool> stopped{false};
  mutable std::atomic<uint64_t> offered{0};  // events, with events beyond the limit

  mutable std::mutex mutex;                // guards `logs`
  std::vector<std::shared_ptr<Log>> logs;  // close() clears it, because each log refers to its session

  int64_t now() const { return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count(); }
};

namespace {
struct Recorder {                    // guarded by recorder_mutex
  std::shared_ptr<Session> session;  // the recording session
  uint64_t last = 0;                 // id
};
Recorder& recorder() {
  static Recorder& r = *new Recorder;
  return r;
}

// The log of the calling thread, or null if no session records any more.
std::shared_ptr<Log> log_of_thread() {
  std::shared_ptr<Log>& own = local().log;
  const uint64_t id = current.load(std::memory_order_acquire);
  if (!id) return nullptr;
  if (own && local().session == id) [[likely]]
    return own;
  const std::lock_guard lock(recorder_mutex());
  const std::shared_ptr<Session>& session = recorder().session;
  if (!session) return nullptr;
  const std::lock_guard inner(session->mutex);
  own = std::make_shared<Log>(session, static_cast<uint32_t>(session->logs.size()));
  session->logs.push_back(own);
  local().session = session->id;
  return own;
}

// The bytes of memory within an operand's reach: an element shared by several indices counts once.
uint64_t bytes_of(const plugrad_view& view) {
  if (view.layout & PLUGRAD_IMMEDIATE) return 0;
  uint64_t count = 1;
  for (int i = 0; i < view.rank; ++i)
    if (view.strides[i] || !view.shape[i]) count *= static_cast<uint64_t>(view.shape[i]);
  return count * dtype_size(view.dtype);
}

ProfileOperand described(const plugrad_view& view, bool output) {
  ProfileOperand operand;
  const DTypeInfo* dtype = dtype_info(view.dtype);
  operand.dtype = dtype ? dtype->label : "?";
  operand.output = output;
  operand.number = view.layout & PLUGRAD_IMMEDIATE;
  operand.rank = view.rank;
  std::copy_n(view.shape, view.rank, operand.extents.begin());
  return operand;
}

std::unique_ptr<ProfileEvent> make_event(EventKind kind, std::string name, DeviceState* device, const Log& log) {
  auto event = std::make_unique<ProfileEvent>();
  event->kind = kind;
  event->name = std::move(name);
  event->device = Device(device);
  event->thread = log.thread;
  if (const char* gradient = local().gradient_of) event->gradient = gradient;
  return event;
}

// Appends an event unless the session ended or is full.
void append(Log& log, ProfileEvent&& event) {
  const Session& session = *log.session;
  if (session.stopped || session.offered++ >= session.options.limit) return;
  const std::lock_guard lock(log.mutex);
  log.events.push_back(std::move(event));
}

// Polls: the plugin's notifications take longer than most ops.
void await(StreamState& stream) {
  const uint64_t last = stream.next.load(std::memory_order_acquire);
  uint64_t done = 0;
  while (!streams::closed() && contained(stream.device->table.completed, stream.handle, &done) == PLUGRAD_OK && done < last)
    std::this_thread::yield();
}
}  // namespace

void join() { log_of_thread(); }

// --- Scopes.

void Scope::begin(std::unique_ptr<ProfileEvent> event) {
  event->depth = log_->depth++;
  event_ = std::move(event);
  exceptions_ = std::uncaught_exceptions();
  event_->begin = log_->session->now();
}

void Scope::begin(EventKind kind, const char* name, DeviceState* device, uint64_t bytes) {
  log_ = log_of_thread();
  if (!log_) return;
  auto event = make_event(kind, name, device, *log_);
  event->bytes = bytes;
  event->complete = kind != EventKind::copy || !device->compute;
  begin(std::move(event));
}

void Scope::begin(DeviceState& device, const OpCall& call, const std::string& name) {
  log_ = log_of_thread();
  if (!log_) return;
  auto event = make_event(EventKind::op, name.empty() ? op_label(call.opcode) : name, &device, *log_);
  for (int i = 0; i < call.operands(); ++i) {
    event->operands.push_back(described(*call.views[i], i < call.outputs));
    event->bytes += bytes_of(*call.views[i]) * (is_in_out(call.opcode, i) ? 2 : 1);
  }
  event->complete = !device.compute;
  begin(std::move(event));
}

void Scope::complete(StreamState* stream) {
  if (!event_ || !stream || !log_->session->options.synchronize) return;
  await(*stream);
  event_->complete = true;
}

void Scope::drop() {
  if (event_) --log_->depth;
  event_.reset();
}

// Called by the destructor, also while an exception is in flight. If memory is short, the event is lost.
void Scope::finish() noexcept {
  event_->duration = log_->session->now() - event_->begin;
  event_->failed = std::uncaught_exceptions() > exceptions_;
  --log_->depth;
  try {
    if (event_->kind == EventKind::op || event_->kind == EventKind::copy)
      std::tie(event_->live, event_->peak) = event_->device.state().allocator.sample();
    append(*log_, std::move(*event_));
  } catch (const std::exception&) {
    ++log_->session->offered;
  }
}

void note_decomposition(DeviceState& device, uint32_t opcode) {
  const std::shared_ptr<Log> log = log_of_thread();
  if (!log) return;
  const auto event = make_event(EventKind::op, op_label(opcode), &device, *log);
  event->how = How::decomposed;
  event->depth = log->depth;
  event->begin = log->session->now();
  append(*log, std::move(*event));
}

// --- Sessions.

std::shared_ptr<Session> start(const ProfilerOptions& options) {
  const std::lock_guard lock(recorder_mutex());
  Recorder& r = recorder();
  if (r.session)
    throw Error(Code::invalid,
                "[profiler] another profiler is recording: stop it first, or name a part of the program by a "
                "range");
  r.session = std::make_shared<Session>(options, ++r.last);
  current.store(r.last, std::memory_order_release);
  observe::update();
  return r.session;
}

bool stop(Session& session) {
  const std::lock_guard lock(recorder_mutex());
  if (session.stopped.exchange(true)) return false;
  current = 0;
  recorder().session.reset();
  observe::update();
  return true;
}

const ProfilerOptions& options_of(const Session& session) { return session.options; }

void close(Session& session) noexcept {
  const std::vector<std::shared_ptr<Log>> logs = [&] {
    const std::lock_guard lock(session.mutex);
    return std::exchange(session.logs, {});
  }();
  for (const std::shared_ptr<Log>& log : logs) {
    const std::lock_guard lock(log->mutex);
    log->events = {};
  }
}

uint64_t dropped_of(const Session& session) {
  const uint64_t offered = session.offered, limit = session.options.limit;
  return offered > limit ? offered - limit : 0;
}

namespace {
int64_t end_of(const ProfileEvent& event) { return event.begin + event.duration; }

// Computes `self` and the peaks of ranges for the sorted events of a thread. The event around another event may be missing,
// because it did not end yet.
void nest(std::span<ProfileEvent> events) {
  std::vector<ProfileEvent*> around;
  for (ProfileEvent& each : events) {
    while (!around.empty() && (around.back()->depth >= each.depth || end_of(*around.back()) < end_of(each)))
      around.pop_back();
    each.self = each.duration;
    if (!around.empty()) around.back()->self -= each.duration;
    for (ProfileEvent* outer : around)
      if (!outer->device.defined()) outer->peak = std::max(outer->peak, each.peak);
    around.push_back(&each);
  }
}
}  // namespace

std::vector<ProfileEvent> events_of(const Session& session) {
  std::vector<ProfileEvent> all;
  const std::lock_guard lock(session.mutex);
  for (const std::shared_ptr<Log>& log : session.logs) {
    const size_t first = all.size();
    {
      const std::lock_guard inner(log->mutex);
      all.insert(all.end(), log->events.begin(), log->events.end());
    }
    const std::span own = std::span(all).subspan(first);
    std::ranges::stable_sort(own, {}, [](const ProfileEvent& e) { return std::tuple(e.begin, e.depth); });
    nest(own);
  }
  return all;
}

}  // namespace profiling
}  // namespace plugrad
