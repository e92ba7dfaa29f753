#include <core/runtime/streams/stream.hpp>

#include <core/runtime/local.hpp>
#include <core/runtime/memory/ledger.hpp>
#include <core/runtime/plugins/foreign.hpp>
#include <core/runtime/plugins/platform.hpp>
#include <core/runtime/streams/native.hpp>
#include <core/runtime/streams/stall.hpp>
#include <plugrad/runtime/log.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
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

void close_all_at_exit() {
  Ledger& l = ledger();
  for (uint32_t i = 0; i < l.count; ++i) {
    StreamState& s = *l.all[i];
    if (!s.gate.lock()) continue;
    plugrad_failure failure{sizeof failure, 0, 0, 0};
    if (contained(s.device->table.sync, s.handle, &failure) == PLUGRAD_DEVICE_ERROR)
      log(LogLevel::warning, s.device->name + ": op " + std::to_string(failure.first) + " failed, and no call reported it");
    s.gate.close();
  }
  l.closed = true;
}

void close_all_in_child() {
  Ledger& l = ledger();
  l.closed = true;
  for (uint32_t i = 0; i < l.count; ++i) l.all[i]->gate.close();
}

// --- Ordering.

// Merges two edges to the same stream unless a known failure lies between them. The caller holds the ledger.
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
  if (s.device->table.resolve != other.device->table.resolve) {  // between two plugins only the host can wait
    while (poll(other) < number) std::this_thread::yield();
    return PLUGRAD_OK;
  }
  uint64_t covered = number;
  if (const plugrad_status status = contained(s.device->table.wait, s.handle, other.handle, &covered)) return status;
  s.waited[other.id] = covered;
  return PLUGRAD_OK;
}

struct Waits {
  std::array<std::pair<StreamState*, uint64_t>, kMaxStreams + 2> items;
  size_t count = 0;
  void add(StreamState* s, uint64_t number) { items[count++] = {s, number}; }
};

// Collects the waits for a use of x on s. The caller holds the ledger.
Waits collect_waits(StreamState& s, Storage& x, bool write) {
  Ledger& l = ledger();
  Waits after;
  StreamState* const home = l.all[x.owner & ~kForeign];
  if (x.written && x.writer != s.id) {
    StreamState& writer = *l.all[x.writer];
    after.add(&writer, x.written.load());
    if (!write && writer.clean < x.written) add_edge(s, writer, x.written);  // a read: a failure there is a failure here
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

// Drops the record of foreign uses once the home has waited for all of them. The caller holds the ledger and the gate of s.
void forget_foreign(StreamState& s, Storage& x) {
  Ledger& l = ledger();
  for (uint32_t i = 0; x.foreign && i < l.count; ++i)
    if (std::max(s.waited[i], l.all[i]->done.load()) < x.foreign[i]) return;
  x.foreign.reset();
  x.owner = s.id;
}

// Copies the list of waits, then submits them without holding the ledger. The caller holds the gate of s.
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
  if (!x || x->owner.load(std::memory_order_relaxed) == s.id) [[likely]]
    return PLUGRAD_OK;
  return order_slow(s, *x, write, foreign);
}

// Records a use of x by op s.next, if s is not its home. Called after the submission: if the plugin refused the op, other
// streams would wait for a number without an op, and the op with this number may later wait for them.
[[gnu::noinline, gnu::cold]] void note_foreign(StreamState& s, Storage* x) {
  if (!x || (x->owner.load(std::memory_order_relaxed) & ~kForeign) == s.id) return;
  const std::lock_guard lock(ledger().mutex);
  if (!x->foreign) x->foreign.reset(new uint64_t[kMaxStreams]{});
  x->foreign[s.id] = s.next;
  x->owner = x->owner | kForeign;
}

inline void note_written(const StreamState& s, Storage& x, uint64_t number) {
  x.writer = s.id;
  x.written.store(number, std::memory_order_relaxed);
}

[[gnu::noinline, gnu::cold]] void check_valid(const Storage* x, const char* what) {
  if (!x || !x->written) return;
  const std::lock_guard lock(ledger().mutex);
  const StreamState& writer = *ledger().all[x->writer];
  if (const Span* f = find(writer, x->written, x->written))
    throw Error(f->origin->code(),
                std::string("[") + what + "] an operand is invalid because of an earlier failure: " + f->origin->what(),
                f->origin->first(), f->origin->last());
}

std::unique_ptr<StreamState> make(DeviceState& device, uint32_t role) {
  auto stream = std::make_unique<StreamState>();
  stream->device = &device;
  stream->role = role;
  stream->edges.reserve(kMaxEdges + 4);
  device.check(contained(device.table.stream_create, device.handle, role, &stream->handle), "stream_create");
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

void finish_all() noexcept {
  Ledger& l = ledger();
  for (uint32_t i = 0; !closed() && i < l.count; ++i) {  // streams are never removed
    StreamState& s = *l.all[i];
    if (s.device->lost) continue;  // the program knows
    try {
      sync(s);
    } catch (const Error& error) {
      if (!s.device->lost) log(LogLevel::warning, error.what());
    } catch (...) {  // memory is short, and the process ends anyway
    }
  }
}

bool closed() { return ledger().closed.load(std::memory_order_relaxed); }
void insert_waits(bool on) { ledger().waits = on; }

// Marks the device as lost. A stream without a number, or with a number beyond its ops, would stop or corrupt the program.
[[gnu::noinline, gnu::cold]] static uint64_t give_up(StreamState& s, plugrad_status status, uint64_t number) {
  const std::string why = take_report();
  if (!s.device->lost.exchange(true))
    log(LogLevel::error,
        "[" + s.device->name + "] its plugin breaks the contract, so the device counts as lost: completed " +
            (status == PLUGRAD_OK ? "stored " + std::to_string(number) + " after op " + std::to_string(s.next)
             : why.empty()        ? "returned status " + std::to_string(status)
                                  : why));
  return s.next;
}

uint64_t poll(StreamState& s) {
  uint64_t number = 0;
  const plugrad_status status = contained(s.device->table.completed, s.handle, &number);
  const bool known = status == PLUGRAD_OK || status == PLUGRAD_DEVICE_ERROR || status == PLUGRAD_DEVICE_LOST;
  // An op may complete before its submission has returned and counted it.
  const uint64_t most = std::max(s.next.load(std::memory_order_relaxed) + 1, s.given.load(std::memory_order_relaxed));
  if (!known || number > most) [[unlikely]]
    number = give_up(s, status, number);
  uint64_t before = s.done.load();
  while (before < number && !s.done.compare_exchange_weak(before, number)) {
  }
  return std::max(before, number);
}

void drain(StreamState& s) {
  const uint64_t last = s.next;
  if (poll(s) >= last) return;
  native::await(s, last);
  Stall stall;
  for (uint64_t done = poll(s); done < last; done = poll(s)) {
    std::this_thread::yield();
    if (!stall.lasts(done)) continue;
    plugrad_failure failure{sizeof failure, 0, 0, 0};  // the stream waits itself; then its number must have risen
    contained(s.device->table.sync, s.handle, &failure);
    if (poll(s) < last) return static_cast<void>(give_up(s, PLUGRAD_OK, done));
  }
}

bool idle(const Storage& x, bool home_too) {
  Ledger& l = ledger();
  if (home_too && x.device->compute->done < x.freed) return false;
  for (uint32_t i = 0; x.foreign && i < l.count; ++i)
    if (l.all[i]->done < x.foreign[i]) return false;
  return true;
}

// With PLUGRAD_SYNC=1 the submitting thread waits, so that a failure names the op.
[[gnu::noinline, gnu::cold]] static void sync_at_once(StreamState& s, const char* what) {
  try {
    sync(s);
  } catch (const Error& error) {
    throw Error(error.code(), std::string("[") + what + "] " + error.what(), error.first(), error.last());
  }
}

// Calls check, which may throw, if a failure was ever recorded.
template <class Check> static void check_operands(StreamState& s, Check check) {
  if (!ledger().troubled.load(std::memory_order_relaxed)) [[likely]]
    return;
  try {
    check();
  } catch (...) {
    s.gate.unlock();
    throw;
  }
}

plugrad_status submit(StreamState& s, const char* what, const Uses& uses, plugrad_status (*call)(void*, uint64_t),
                      void* context) {
  enter(s);
  check_operands(s, [&] {
    for (const Storage* x : uses.inputs) check_valid(x, what);
    for (size_t i = 0; i < uses.outputs.size(); ++i)
      if (!(uses.overwrites >> i & 1)) check_valid(uses.outputs[i], what);
  });
  bool foreign = false;
  plugrad_status status = PLUGRAD_OK;
  for (Storage* x : uses.inputs)
    if (!status) status = order(s, x, uses.alone, foreign);
  for (Storage* x : uses.outputs)
    if (!status) status = order(s, x, true, foreign);
  const uint64_t number = s.next.load(std::memory_order_relaxed) + 1;
  if (!status) status = call(context, number);
  if (status) [[unlikely]]
    return refused(s, what, status);
  s.names[number % StreamState::kNamed] = what;
  s.next.store(number, std::memory_order_release);
  for (Storage* x : uses.outputs) note_written(s, *x, number);
  if (foreign) [[unlikely]] {
    for (Storage* x : uses.inputs) note_foreign(s, x);
    for (Storage* x : uses.outputs) note_foreign(s, x);
  }
  s.gate.unlock();
  if (ledger().at_once) [[unlikely]]
    sync_at_once(s, what);
  return PLUGRAD_OK;
}

plugrad_status submit_list(StreamState& s, const char* what, const ListUses& uses, plugrad_status (*call)(void*, uint64_t),
                           void* context) {
  if (ledger().at_once) return PLUGRAD_UNSUPPORTED;
  enter(s);
  check_operands(s, [&] {
    for (const Storage* x : uses.inputs) check_valid(x, what);
    for (const ListUses::Written& each : uses.outputs)
      if (!each.is_fresh) check_valid(each.storage, what);
  });
  bool foreign = false;
  plugrad_status status = PLUGRAD_OK;
  for (Storage* x : uses.inputs)
    if (!status) status = order(s, x, false, foreign);
  for (const ListUses::Written& each : uses.outputs)
    if (!status) status = order(s, each.storage, true, foreign);
  const uint64_t first = s.next.load(std::memory_order_relaxed) + 1;
  s.given = first + uses.count - 1;
  if (!status) status = call(context, first);
  if (status) return refused(s, what, status);
  for (uint64_t i = 0; i < std::min<uint64_t>(uses.count, StreamState::kNamed); ++i)
    s.names[(s.given - i) % StreamState::kNamed] = what;
  s.next.store(s.given, std::memory_order_release);
  for (const ListUses::Written& each : uses.outputs) note_written(s, *each.storage, first + each.last);
  if (foreign) {
    for (Storage* x : uses.inputs) note_foreign(s, x);
    for (const ListUses::Written& each : uses.outputs) note_foreign(s, each.storage);
  }
  s.gate.unlock();
  return PLUGRAD_OK;
}

}  // namespace streams
}  // namespace plugrad
