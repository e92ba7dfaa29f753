// Failures: recorded when a call meets them, propagated to dependent ops, and thrown to callers of verify.
#include <core/runtime/memory/ledger.hpp>
#include <core/runtime/plugins/foreign.hpp>

#include <core/runtime/local.hpp>
#include <core/runtime/streams/stall.hpp>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace plugrad::streams {

const Span* find(const StreamState& s, uint64_t low, uint64_t high) {
  for (const Span& f : s.failures)
    if (high >= f.first && low <= f.last) return &f;
  return nullptr;
}

void throw_lost(const DeviceState& device) {
  throw Error(Code::device_lost, "[" + device.name + "] " +
                                     (ledger().closed ? "the process was forked or is ending: open this device in the "
                                                        "process that uses it (start it by spawn instead of fork)"
                                                      : "the device is lost"));
}

namespace {
// The names of the ops first .. last in parentheses, each once, as far as the stream still knows them. The caller holds the
// gate.
std::string names_of(const StreamState& s, uint64_t first, uint64_t last) {
  constexpr size_t kMost = 4;
  std::vector<std::string> names;
  const uint64_t next = s.next.load(), oldest = next > StreamState::kNamed ? next - StreamState::kNamed + 1 : 1;
  for (uint64_t number = std::max(first, oldest); number <= std::min(last, next); ++number) {
    const char* const name = s.names[number % StreamState::kNamed];
    if (name && std::ranges::find(names, name) == names.end()) names.emplace_back(name);
  }
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMost); ++i) text += (i ? ", " : "") + names[i];
  if (names.size() > kMost) text += ", ...";
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text.empty() ? "" : " (" + text + ")";
}

std::shared_ptr<const Error> describe(const StreamState& s, plugrad_status status, const plugrad_failure& failure,
                                      const std::string& why) {
  const bool lost = status == PLUGRAD_DEVICE_LOST;
  const uint64_t first = lost ? s.clean + 1 : failure.first, last = lost ? ~0ull : failure.last;
  std::string what = "[" + s.device->name + (s.role == PLUGRAD_COPY_STREAM ? "] copy " : "] op ") + std::to_string(first);
  if (lost) what += " or later";
  else if (last != first) what += " to " + std::to_string(last);
  if (!lost) what += names_of(s, first, last);
  const Code code =
      lost ? Code::device_lost
           : static_cast<Code>(failure.status ? failure.status : static_cast<plugrad_status>(PLUGRAD_DEVICE_ERROR));
  return std::make_shared<const Error>(code, what + " failed: " + (why.empty() ? "the device gave no reason" : why), first,
                                       last);
}

// While a Clearing exists, no thread may mark the stream's ops as succeeded.
class Clearing {
 public:
  explicit Clearing(StreamState& s) : s_(s) { ++s_.clearing; }
  ~Clearing() { --s_.clearing; }
  Clearing(const Clearing&) = delete;
  Clearing& operator=(const Clearing&) = delete;

 private:
  StreamState& s_;
};

// Syncs and records a failure; returns null if nothing failed. The caller holds the gate.
std::shared_ptr<const Error> clear(StreamState& s) {
  const Clearing unsettled(s);
  plugrad_failure failure{sizeof failure, 0, 0, 0};
  const plugrad_status status = contained(s.device->table.sync, s.handle, &failure);
  const std::string why = take_report();
  if (status == PLUGRAD_OK) {
    s.done = s.next.load();
    return nullptr;
  }
  const std::lock_guard lock(ledger().mutex);
  auto error = describe(s, status, failure, why);
  const bool lost = status == PLUGRAD_DEVICE_LOST;
  s.failures.push_back({error->first(), lost ? ~0ull : s.next.load(), error});
  s.done = s.next.load();
  ledger().troubled = true;
  if (lost) s.device->lost = true;
  return error;
}

// Marks the other streams of a lost device as failed and returns them. The caller must not hold the ledger.
std::vector<StreamState*> spread_lost(StreamState& from) {
  std::vector<StreamState*> marked;
  Ledger& l = ledger();
  const std::lock_guard lock(l.mutex);
  for (uint32_t i = 0; i < l.count; ++i) {
    StreamState& s = *l.all[i];
    if (s.device != from.device || &s == &from || (!s.failures.empty() && s.failures.back().last == ~0ull)) continue;
    s.failures.push_back({s.clean + 1, ~0ull, from.failures.back().origin});
    marked.push_back(&s);
  }
  return marked;
}

// Marks ops of s that depend on failed ops of `from`; returns whether it marked any.
bool spread_to(StreamState& s, const StreamState& from) {
  Ledger& l = ledger();
  uint64_t at = ~0ull;
  std::shared_ptr<const Error> origin;
  const Clearing unsettled(s);
  {
    const std::lock_guard lock(l.mutex);
    std::erase_if(s.edges, [&](const Edge& e) {
      const Span* f = e.other == &from ? find(from, e.low, e.number) : nullptr;
      if (f && e.at < at) at = e.at, origin = f->origin;
      return f != nullptr;
    });
  }
  if (!origin || !s.gate.lock()) return false;  // the gate keeps s.next from changing
  {
    const std::lock_guard lock(l.mutex);
    s.failures.push_back({at, s.next, origin});
  }
  s.gate.unlock();
  return true;
}

// Marks all ops on other streams that depend on a failure of `from`, transitively. The caller holds no gate.
void spread(StreamState& from) {
  std::vector<StreamState*> pending{&from};
  while (!pending.empty()) {
    StreamState& source = *pending.back();
    pending.pop_back();
    if (source.device->lost)
      for (StreamState* s : spread_lost(source)) pending.push_back(s);
    for (uint32_t i = 0; i < ledger().count; ++i) {
      StreamState& s = *ledger().all[i];
      if (!s.device->lost && spread_to(s, source)) pending.push_back(&s);
    }
  }
}
}  // namespace

plugrad_status refused(StreamState& s, const char* what, plugrad_status status) {
  const bool failed_before = status == PLUGRAD_DEVICE_ERROR || status == PLUGRAD_DEVICE_LOST;
  std::string why = failed_before ? std::string() : take_report();
  const std::shared_ptr<const Error> failure = failed_before ? clear(s) : nullptr;
  s.gate.unlock();
  if (failure) {
    spread(s);
    throw Error(*failure);
  }
  if (status != PLUGRAD_UNSUPPORTED && status != PLUGRAD_OUT_OF_MEMORY)
    throw_status(status, std::string(what) + " on " + s.device->name, why);
  local().report = std::move(why);  // for the caller
  return status;
}

namespace {
// Throws the failure covering number; returns whether number is known to have succeeded. Locks the ledger.
bool known_clean(StreamState& s, uint64_t number) {
  const std::lock_guard lock(ledger().mutex);
  if (const Span* f = find(s, number, number)) throw Error(*f->origin);
  return s.clean >= number;
}

// Waits until the stream is idle, and records and propagates a failure.
void clear_and_spread(StreamState& s) {
  if (!s.gate.lock()) throw_lost(*s.device);
  const std::shared_ptr<const Error> failed = clear(s);
  s.gate.unlock();
  if (failed) spread(s);
}

[[noreturn]] void throw_stuck(const StreamState& s, uint64_t number, uint64_t stored, const char* when) {
  s.device->lost = true;
  throw_breach(s.device->name, "completed stored " + std::to_string(stored) + " " + when + ", but the host waits for op " +
                                   std::to_string(number));
}

// Waits for number. Records and propagates a failure. Throws Error (internal) with the plugin's name if the stream's numbers
// go back, or do not arrive although the stream is idle.
void await(StreamState& s, uint64_t number) {
  uint64_t most = 0;
  Stall stall;
  for (bool idle = false;;) {
    uint64_t n = 0;
    if (contained(s.device->table.completed, s.handle, &n) != PLUGRAD_OK) return clear_and_spread(s);
    if (n >= number) return;
    if (n < most) throw_stuck(s, number, n, ("after " + std::to_string(most)).c_str());
    if (idle) throw_stuck(s, number, n, "after a sync");
    most = n;
    if (stall.lasts(n)) {
      clear_and_spread(s);
      idle = true;
    } else {
      std::this_thread::yield();
    }
  }
}

// Returns the edges from ops up to number to their sources on other streams.
std::vector<Edge> sources_of(StreamState& s, uint64_t number) {
  const std::lock_guard lock(ledger().mutex);
  std::vector<Edge> sources;
  std::ranges::copy_if(s.edges, std::back_inserter(sources), [&](const Edge& e) { return e.at <= number; });
  return sources;
}

// Marks everything up to number as succeeded, or throws a failure. Returns false while a failure is being recorded: retry.
bool settle_clean(StreamState& s, uint64_t number, const std::vector<Edge>& sources) {
  const std::lock_guard lock(ledger().mutex);
  if (s.clearing) return false;
  for (const Edge& e : sources)
    if (const Span* f = find(*e.other, e.low, e.number)) throw Error(*f->origin);
  if (const Span* f = find(s, number, number)) throw Error(*f->origin);
  s.clean = std::max(s.clean, number);
  std::erase_if(s.edges, [&](const Edge& e) { return e.at <= s.clean && e.number <= e.other->clean; });
  return true;
}
}  // namespace

void verify(StreamState& s, uint64_t number) {
  if (closed()) throw_lost(*s.device);
  while (!known_clean(s, number)) {
    await(s, number);
    const std::vector<Edge> sources = sources_of(s, number);
    for (const Edge& e : sources) verify(*e.other, e.number);
    if (settle_clean(s, number, sources)) return;
    std::this_thread::yield();
  }
}

void verify(const Storage& x) {
  if (const uint64_t number = x.written) verify(*ledger().all[x.writer], number);
}

void sync(StreamState& s) {
  enter(s);
  const std::shared_ptr<const Error> failed = clear(s);
  s.gate.unlock();
  if (!failed) return;
  spread(s);
  throw Error(*failed);
}

}  // namespace plugrad::streams
