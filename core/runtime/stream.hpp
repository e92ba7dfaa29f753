// The core's half of time: numbers, waits between streams, failures.
#pragma once
#include <core/runtime/storage.hpp>
#include <plugrad/runtime/error.hpp>
#include <plugrad/sdk/abi.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace plugrad {

// A stream's lock and whether it takes work, in one word: closed at exit and in a forked child, where nobody may wait for
// a lock whose holder does not exist.
class Gate {
 public:
  // False: closed.
  bool lock() {
    uint32_t free = kFree;
    if (word_.compare_exchange_strong(free, kHeld, std::memory_order_acquire)) [[likely]] return true;
    return lock_slow();
  }
  void unlock() {
    uint32_t held = kHeld;
    if (word_.compare_exchange_strong(held, kFree, std::memory_order_release)) [[likely]] return;
    if (held == kClosed) return;
    word_.store(kFree, std::memory_order_release);
    word_.notify_one();
  }
  // By the holder, or in a child.
  void close() {
    word_.store(kClosed);
    word_.notify_all();
  }

 private:
  enum : uint32_t { kFree, kHeld, kContended, kClosed };
  bool lock_slow();
  std::atomic<uint32_t> word_{kFree};
};

// What became invalid: numbers first .. last of a stream.
struct Span {
  uint64_t first, last;
  std::shared_ptr<const Error> origin;
};
// Op `at` of this stream and later ones use what other wrote in [low, number].
struct Edge {
  uint64_t at;
  struct StreamState* other;
  uint64_t low, number;
};

// Lock order: gate, then ledger. Never two gates. The ledger is held for a few instructions, never over a call that may
// wait.
struct StreamState {
  DeviceState* device = nullptr;
  plugrad_stream* handle = nullptr;
  uint32_t id = 0;
  uint32_t role = PLUGRAD_COMPUTE_STREAM;
  Gate gate;
  std::atomic<uint64_t> next{0};        // number of the last op submitted; written under the gate
  std::atomic<uint64_t> done{0};        // known to be no longer in flight
  uint64_t waited[kMaxStreams] = {};    // under the gate: what of each other stream this one's next op comes after
  std::atomic<uint32_t> clearing{0};    // threads that take down a failure: the plugin forgot it, the ledger has it not yet
  uint64_t clean = 0;                   // under the ledger: up to here well, and all it was derived from too
  std::vector<Edge> edges;              // under the ledger
  std::vector<Span> failures;           // under the ledger
};

// Host memory that a device copies to and from by itself. Its bytes may be touched after settle.
struct Pinned {
  char* bytes = nullptr;
  DeviceState* device = nullptr;
  uint64_t size = 0;
  StreamState* writer = nullptr;
  uint64_t written = 0, read = 0;  // numbers on the copy stream
};

namespace streams {

// Makes the two streams of a device and enters them into the ledger: both, or, where it throws Error, none.
void create(DeviceState& device);

// What a submission touches: written storages, then read ones; which of the written ones it overwrites wholly.
struct Uses {
  std::span<Storage* const> outputs, inputs;  // null entries (immediates) are skipped
  uint32_t overwrites = ~0u;                  // bit i: output i is written wholly, so that what it held does not matter
  bool alone = false;                         // inputs, too, come after all earlier uses, reads included
};

// Calls call(number) after ordering the stream behind what uses wait for. Answers UNSUPPORTED and OUT_OF_MEMORY of the
// plugin; throws Error for the rest, after taking down a failure of the stream.
plugrad_status submit(StreamState& stream, const char* what, const Uses& uses, plugrad_status (*call)(void*, uint64_t),
                      void* context);
template <class F> plugrad_status submit(StreamState& stream, const char* what, const Uses& uses, F&& call) {
  return submit(stream, what, uses, [](void* f, uint64_t number) { return (*static_cast<F*>(f))(number); }, &call);
}

// What the plugin knows to be out of flight.
uint64_t poll(StreamState& stream);
// Waits until nothing submitted so far is in flight, however it went.
void drain(StreamState& stream);
// Whether nothing in flight uses a free block, as far as is known without asking.
bool idle(const Storage& storage, bool home_too);
// Waits until all up to number is over, and throws the failure that number or one of its sources is part of.
void verify(StreamState& stream, uint64_t number);
// The same for whatever wrote storage last. Without effect for one that was never written.
void verify(const Storage& storage);
// Waits for all submitted to the stream; throws what failed.
void sync(StreamState& stream);
// Whether the process is at its end or forked: nothing may enter a plugin with streams.
bool closed();
// For the test that a device finds missing waits: off, the core inserts none.
void insert_waits(bool on);
// Registers the exit handler again if libraries were loaded since, so that it runs before theirs.
void guard_exit();

}  // namespace streams
}  // namespace plugrad
