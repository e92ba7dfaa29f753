#include <core/runtime/stream.hpp>

#include <core/runtime/device_state.hpp>
#include <core/runtime/local.hpp>
#include <core/runtime/platform.hpp>
#include <plugrad/runtime/log.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <utility>

namespace plugrad {

bool Gate::lock_slow() {
  for (uint32_t seen = word_.load();;) {
    if (seen == kClosed) return false;
    if (seen == kFree) {
      if (word_.compare_exchange_weak(seen, kContended, std::memory_order_acquire)) return true;
    } else if (seen == kContended || word_.compare_exchange_weak(seen, kContended)) {
      word_.wait(kContended);
      seen = word_.load();
    }
  }
}

namespace streams {
namespace {
constexpr size_t kMaxEdges = 60;

struct Ledger {
  std::mutex mutex;
  std::array<StreamState*, kMaxStreams> all{};
  std::atomic<uint32_t> count{0};
  std::atomic<bool> troubled{false};  // some failure was ever taken down
  std::atomic<bool> closed{false};
  std::atomic<bool> waits{true};
  const bool at_once =
      platform::environment("PLUGRAD_SYNC") && std::string_view(platform::environment("PLUGRAD_SYNC")) == "1";
};
Ledger& ledger() {
  static Ledger& l = *new Ledger;  // used until the very end of the process
  return l;
}

const Span* find(const StreamState& s, uint64_t low, uint64_t high) {  // ledger held
  for (const Span& f : s.failures)
    if (high >= f.first && low <= f.last) return &f;
  return nullptr;
}

[[noreturn]] void throw_lost(const DeviceState& device) {
  throw Error(Code::device_lost, "[" + device.name + "] " +
                                     (ledger().closed ? "the process was forked or is at its end: start work on this device "
                                                        "in the process that uses it"
                                                      : "the device is lost"));
}

void enter(StreamState& s) {
  if (s.device->lost.load(std::memory_order_relaxed) || !s.gate.lock()) [[unlikely]] throw_lost(*s.device);
}

void close_all_at_exit() {
  Ledger& l = ledger();
  for (uint32_t i = 0; i < l.count; ++i) {
    StreamState& s = *l.all[i];
    if (!s.gate.lock()) continue;
    plugrad_failure failure{sizeof failure, 0, 0, 0};
    if (s.device->table.sync(s.handle, &failure) == PLUGRAD_DEVICE_ERROR)
      log(LogLevel::warning, s.device->name + ": op " + std::to_string(failure.first) + " failed, and nobody looked");
    s.gate.close();
  }
  l.closed = true;
}

void close_all_in_child() {
  Ledger& l = ledger();
  l.closed = true;
  for (uint32_t i = 0; i < l.count; ++i) l.all[i]->gate.close();
}

// --- Order.

// Two edges to one stream become one, unless a known failure lies between them. Ledger held.
void merge_one(StreamState& s) {
  Edge& e = s.edges.front();
  const auto next = std::find_if(s.edges.begin() + 1, s.edges.end(), [&](const Edge& o) {
    return o.other == e.other && !find(*e.other, std::min(e.low, o.low), std::max(e.number, o.number));
  });
  if (next == s.edges.end()) {
    std::ranges::rotate(s.edges, s.edges.begin() + 1);
    return;
  }
  e.low = std::min(e.low, next->low);
  e.number = std::max(e.number, next->number);
  s.edges.erase(next);
}

void add_edge(StreamState& s, StreamState& other, uint64_t number) {  // ledger held
  s.edges.push_back({s.next + 1, &other, number, number});
  if (s.edges.size() <= kMaxEdges) return;
  std::erase_if(s.edges, [](const Edge& e) { return e.number <= e.other->clean; });
  if (s.edges.size() > kMaxEdges) merge_one(s);
}

plugrad_status need(StreamState& s, StreamState& other, uint64_t number) {  // gate of s held
  if (&s == &other || s.waited[other.id] >= number || other.done >= number || !ledger().waits) return PLUGRAD_OK;
  if (s.device->table.resolve != other.device->table.resolve) {  // only the host stands between two plugins
    while (poll(other) < number) std::this_thread::yield();
    return PLUGRAD_OK;
  }
  uint64_t covered = number;
  if (const plugrad_status status = s.device->table.wait(s.handle, other.handle, &covered)) return status;
  s.waited[other.id] = covered;
  return PLUGRAD_OK;
}

struct Waits {
  std::array<std::pair<StreamState*, uint64_t>, kMaxStreams + 2> items;
  size_t count = 0;
  void add(StreamState* s, uint64_t number) { items[count++] = {s, number}; }
};

// What a use of x on s has to come after. Ledger held.
Waits collect_waits(StreamState& s, Storage& x, bool write) {
  Ledger& l = ledger();
  Waits after;
  StreamState* const home = l.all[x.owner & ~kForeign];
  if (x.written && x.writer != s.id) {
    StreamState& writer = *l.all[x.writer];
    after.add(&writer, x.written.load());
    if (!write && writer.clean < x.written) add_edge(s, writer, x.written);  // data flows: a failure there is one here
  }
  if (write) {
    if (home != &s) after.add(home, x.written ? home->next.load() : x.freed);
    for (uint32_t i = 0; x.foreign && i < l.count; ++i)
      if (i != s.id && x.foreign[i]) after.add(l.all[i], x.foreign[i]);
  } else if (!x.written && x.freed && home != &s) {
    after.add(home, x.freed);
  }
  return after;
}

// Home again: once it comes after all the others, the side record is done with. Ledger and gate of s held.
void forget_foreign(StreamState& s, Storage& x) {
  Ledger& l = ledger();
  for (uint32_t i = 0; x.foreign && i < l.count; ++i)
    if (std::max(s.waited[i], l.all[i]->done.load()) < x.foreign[i]) return;
  x.foreign.reset();
  x.owner = s.id;
}

// Waits are submitted outside the ledger: what to wait for is copied first. Gate of s held.
[[gnu::noinline, gnu::cold]] plugrad_status order_slow(StreamState& s, Storage& x, bool write, bool& foreign) {
  Waits after;
  {
    const std::lock_guard lock(ledger().mutex);
    after = collect_waits(s, x, write);
  }
  for (size_t i = 0; i < after.count; ++i)
    if (const plugrad_status status = need(s, *after.items[i].first, after.items[i].second)) return status;
  if ((x.owner & ~kForeign) != s.id) {
    foreign = true;
    return PLUGRAD_OK;
  }
  const std::lock_guard lock(ledger().mutex);
  forget_foreign(s, x);
  return PLUGRAD_OK;
}

inline plugrad_status order(StreamState& s, Storage* x, bool write, bool& foreign) {
  if (!x || x->owner.load(std::memory_order_relaxed) == s.id) [[likely]] return PLUGRAD_OK;
  return order_slow(s, *x, write, foreign);
}

// Number s.next uses x, and s is not its home. Noted only now: a number noted for an op that was then refused would be
// waited for before it exists, by the very op it waits for.
[[gnu::noinline, gnu::cold]] void note_foreign(StreamState& s, Storage* x) {
  if (!x || (x->owner.load(std::memory_order_relaxed) & ~kForeign) == s.id) return;
  const std::lock_guard lock(ledger().mutex);
  if (!x->foreign) x->foreign.reset(new uint64_t[kMaxStreams]{});
  x->foreign[s.id] = s.next;
  x->owner = x->owner | kForeign;
}

[[gnu::noinline, gnu::cold]] void check_valid(const Storage* x, const char* what) {
  if (!x || !x->written) return;
  const std::lock_guard lock(ledger().mutex);
  const StreamState& writer = *ledger().all[x->writer];
  if (const Span* f = find(writer, x->written, x->written))
    throw Error(f->origin->code(),
                std::string("[") + what + "] an operand is invalid, because of an earlier failure: " + f->origin->what(),
                f->origin->first(), f->origin->last());
}

// --- Failures.

std::shared_ptr<const Error> describe(const StreamState& s, plugrad_status status, const plugrad_failure& failure,
                                      const std::string& why) {
  const bool lost = status == PLUGRAD_DEVICE_LOST;
  const uint64_t first = lost ? s.clean + 1 : failure.first, last = lost ? ~0ull : failure.last;
  std::string what = "[" + s.device->name + (s.role == PLUGRAD_COPY_STREAM ? "] copy " : "] op ") + std::to_string(first);
  if (lost) what += " or later";
  else if (last != first) what += " to " + std::to_string(last);
  const Code code = lost ? Code::device_lost : Code(failure.status ? failure.status : plugrad_status(PLUGRAD_DEVICE_ERROR));
  return std::make_shared<const Error>(code, what + " failed: " + (why.empty() ? "the device does not say why" : why), first,
                                       last);
}

// While it lives nobody may call what the stream did clean.
class Clearing {
 public:
  explicit Clearing(StreamState& s) : s_(s) { ++s_.clearing; }
  ~Clearing() { --s_.clearing; }
  Clearing(const Clearing&) = delete;
  Clearing& operator=(const Clearing&) = delete;

 private:
  StreamState& s_;
};

// Syncs, and takes down what failed; null if nothing did. Gate held.
std::shared_ptr<const Error> clear(StreamState& s) {
  const Clearing unsettled(s);
  plugrad_failure failure{sizeof failure, 0, 0, 0};
  const plugrad_status status = s.device->table.sync(s.handle, &failure);
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

// Marks all other streams of a lost device. Ledger not held; the streams that it marked.
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

// Marks what s derived from failed work of from; whether there was any.
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
  if (!origin || !s.gate.lock()) return false;  // its number must stand still
  {
    const std::lock_guard lock(l.mutex);
    s.failures.push_back({at, s.next, origin});
  }
  s.gate.unlock();
  return true;
}

// Marks what was derived from a failure of from, on other streams and from there on. No gate held.
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

[[gnu::noinline, gnu::cold]] plugrad_status refused(StreamState& s, const char* what, plugrad_status status) {
  const bool failed_before = status == PLUGRAD_DEVICE_ERROR || status == PLUGRAD_DEVICE_LOST;
  const std::string why = failed_before ? std::string() : take_report();
  const std::shared_ptr<const Error> failure = failed_before ? clear(s) : nullptr;
  s.gate.unlock();
  if (failure) {
    spread(s);
    throw Error(*failure);
  }
  if (status == PLUGRAD_UNSUPPORTED || status == PLUGRAD_OUT_OF_MEMORY) return status;
  throw_status(status, std::string(what) + " on " + s.device->name, why);
}
}  // namespace

namespace {
std::unique_ptr<StreamState> make(DeviceState& device, uint32_t role) {
  auto stream = std::make_unique<StreamState>();
  stream->device = &device;
  stream->role = role;
  stream->edges.reserve(kMaxEdges + 4);
  device.check(device.table.stream_create(device.handle, role, &stream->handle), "stream_create");
  keep_reachable(stream->handle);
  return stream;
}
StreamState* enter_ledger(std::unique_ptr<StreamState> stream) {  // ledger held
  Ledger& l = ledger();
  stream->id = l.count;
  l.all[stream->id] = stream.get();
  ++l.count;
  return stream.release();
}
}  // namespace

void create(DeviceState& device) {
  Ledger& l = ledger();
  static const bool once = (platform::at_fork_in_child(close_all_in_child), true);
  (void)once;
  std::unique_ptr<StreamState> compute = make(device, PLUGRAD_COMPUTE_STREAM), copies = make(device, PLUGRAD_COPY_STREAM);
  const std::lock_guard lock(l.mutex);
  if (l.count + 2 > kMaxStreams)
    throw Error(Code::unsupported,
                "[" + device.name + "] more than " + std::to_string(kMaxStreams) + " streams in one process");
  device.compute = enter_ledger(std::move(compute));
  device.copies = enter_ledger(std::move(copies));
}

void guard_exit() {
  static std::atomic<uint64_t> seen{0};
  const uint64_t now = platform::libraries_loaded();
  if (seen.exchange(now) != now) std::atexit(close_all_at_exit);
}

bool closed() { return ledger().closed.load(std::memory_order_relaxed); }
void insert_waits(bool on) { ledger().waits = on; }

uint64_t poll(StreamState& s) {
  uint64_t number = 0;
  s.device->table.completed(s.handle, &number);
  uint64_t before = s.done.load();
  while (before < number && !s.done.compare_exchange_weak(before, number)) {}
  return std::max(before, number);
}

void drain(StreamState& s) {
  for (const uint64_t last = s.next; poll(s) < last;) std::this_thread::yield();
}

bool idle(const Storage& x, bool home_too) {
  Ledger& l = ledger();
  if (home_too && x.device->compute->done < x.freed) return false;
  for (uint32_t i = 0; x.foreign && i < l.count; ++i)
    if (l.all[i]->done < x.foreign[i]) return false;
  return true;
}

plugrad_status submit(StreamState& s, const char* what, const Uses& uses, plugrad_status (*call)(void*, uint64_t),
                      void* context) {
  enter(s);
  if (ledger().troubled.load(std::memory_order_relaxed)) [[unlikely]] {
    try {
      for (const Storage* x : uses.inputs) check_valid(x, what);
      for (size_t i = 0; i < uses.outputs.size(); ++i)
        if (!(uses.overwrites >> i & 1)) check_valid(uses.outputs[i], what);
    } catch (...) {
      s.gate.unlock();
      throw;
    }
  }
  bool foreign = false;
  plugrad_status status = PLUGRAD_OK;
  for (Storage* x : uses.inputs)
    if (!status) status = order(s, x, false, foreign);
  for (Storage* x : uses.outputs)
    if (!status) status = order(s, x, true, foreign);
  const uint64_t number = s.next.load(std::memory_order_relaxed) + 1;
  if (!status) status = call(context, number);
  if (status) [[unlikely]] return refused(s, what, status);
  s.next.store(number, std::memory_order_release);
  for (Storage* x : uses.outputs) {
    x->writer = s.id;
    x->written.store(number, std::memory_order_relaxed);
  }
  if (foreign) [[unlikely]] {
    for (Storage* x : uses.inputs) note_foreign(s, x);
    for (Storage* x : uses.outputs) note_foreign(s, x);
  }
  s.gate.unlock();
  if (ledger().at_once) [[unlikely]] sync(s);
  return PLUGRAD_OK;
}

namespace {
// Throws the failure that number is part of; answers whether it is known to be well. Takes the ledger.
bool known_clean(StreamState& s, uint64_t number) {
  const std::lock_guard lock(ledger().mutex);
  if (const Span* f = find(s, number, number)) throw Error(*f->origin);
  return s.clean >= number;
}

// Waits until number is over. A failure on the way is taken down and spread.
void await(StreamState& s, uint64_t number) {
  for (uint64_t n = 0; n < number;) {
    if (s.device->table.completed(s.handle, &n) == PLUGRAD_OK) {
      if (n < number) std::this_thread::yield();
      continue;
    }
    if (!s.gate.lock()) throw_lost(*s.device);
    const std::shared_ptr<const Error> failed = clear(s);
    s.gate.unlock();
    if (failed) spread(s);
    return;
  }
}

// Throws if a source of number failed; the sources that still have to be looked at.
std::vector<Edge> sources_of(StreamState& s, uint64_t number) {
  const std::lock_guard lock(ledger().mutex);
  std::vector<Edge> sources;
  std::ranges::copy_if(s.edges, std::back_inserter(sources), [&](const Edge& e) { return e.at <= number; });
  return sources;
}

// Takes down that all up to number is well; false: a failure is being taken down right now, look again.
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

}  // namespace streams
}  // namespace plugrad
