// Streams as the core sees them: op numbers, waits between streams, failures.
#pragma once
#include <plugrad/sdk/abi.h>
#include <core/runtime/memory/storage.hpp>
#include <plugrad/runtime/error.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace plugrad {

// A stream's lock. The same word also records whether the stream accepts work. The gate is closed at exit and in a forked
// child, where the holder of a lock may not exist.
class Gate {
 public:
  // Returns false if closed.
  bool lock() {
    uint32_t free = kFree;
    if (word_.compare_exchange_strong(free, kHeld, std::memory_order_acquire)) [[likely]]
      return true;
    return lock_slow();
  }
  void unlock() {
    uint32_t held = kHeld;
    if (word_.compare_exchange_strong(held, kFree, std::memory_order_release)) [[likely]]
      return;
    if (held == kClosed) return;
    word_.store(kFree, std::memory_order_release);
    word_.notify_one();
  }
  // Called by the holder, or in a forked child.
  void close() {
    word_.store(kClosed);
    word_.notify_all();
  }

 private:
  enum : uint32_t { kFree, kHeld, kContended, kClosed };
  bool lock_slow();
  std::atomic<uint32_t> word_{kFree};
};

// A failure: the results of ops first .. last of a stream are invalid.
struct Span {
  uint64_t first, last;
  std::shared_ptr<const Error> origin;
};
// Op `at` and later ops of this stream use results of ops [low, number] of `other`.
struct Edge {
  uint64_t at;
  struct StreamState* other;
  uint64_t low, number;
};

// Lock order: gate, then ledger; never two gates. The ledger is held for a few instructions, never during a call that may
// block.
struct StreamState {
  DeviceState* device = nullptr;
  plugrad_stream* handle = nullptr;
  uint32_t id = 0;
  uint32_t role = PLUGRAD_COMPUTE_STREAM;
  Gate gate;
  std::atomic<uint64_t> next{0};   // number of the last submitted op; written under the gate
  std::atomic<uint64_t> given{0};  // the last number of a list given to the plugin, perhaps not yet submitted
  std::atomic<uint64_t> done{0};   // the last op known to be no longer in flight
  static constexpr uint64_t kNamed = 512;
  const char* names[kNamed] = {};     // of the latest ops, by number % kNamed, for late failures; under the gate
  uint64_t waited[kMaxStreams] = {};  // under the gate: per other stream, the number the next op here waits for
  std::atomic<uint32_t> clearing{0};  // threads recording a failure: the plugin cleared it, the ledger lacks it yet
  uint64_t clean = 0;                 // under the ledger: ops up to here succeeded, and so did all their sources
  std::vector<Edge> edges;            // under the ledger
  std::vector<Span> failures;         // under the ledger
};

// Pinned host memory for asynchronous copies. The host may access its bytes after settle().
struct Pinned {
  char* bytes = nullptr;
  DeviceState* device = nullptr;
  uint64_t size = 0;
  StreamState *writer = nullptr, *reader = nullptr;  // the copy streams of the last copies to and from the bytes
  uint64_t written = 0, read = 0;                    // their numbers there
};

namespace streams {

// Creates the two streams of a device and adds them to the ledger. If it throws Error, it adds neither.
void create(DeviceState& device);

// The storages written and read by a submission.
struct Uses {
  std::span<Storage* const> outputs, inputs;  // null entries (immediates) are skipped
  uint32_t overwrites = ~0u;                  // bit i: output i is wholly overwritten, so its old data need not be valid
  bool alone = false;                         // inputs, too, wait for all earlier uses, reads included
};

// Makes the stream wait for the dependencies of `uses`, then calls call(number). Returns the plugin's UNSUPPORTED and
// OUT_OF_MEMORY; throws Error for any other failure, after recording a failure of the stream.
plugrad_status submit(StreamState& stream, const char* what, const Uses& uses, plugrad_status (*call)(void*, uint64_t),
                      void* context);
template <class F> plugrad_status submit(StreamState& stream, const char* what, const Uses& uses, F&& call) {
  return submit(stream, what, uses, [](void* f, uint64_t number) { return (*static_cast<F*>(f))(number); }, &call);
}

// The storages written, and the storages only read, by a list of ops.
struct ListUses {
  struct Written {
    Storage* storage;
    uint32_t last;  // the place in the list of the last op to write it
    bool is_fresh;  // its old data need not be valid
  };
  std::span<const Written> outputs;
  std::span<Storage* const> inputs;
  uint32_t count;  // ops
};

// The same for a list of ops, submitted to the plugin together: call(first) gets the number of the first op. Returns
// UNSUPPORTED, too, if PLUGRAD_SYNC=1 asks for each op on its own.
plugrad_status submit_list(StreamState& stream, const char* what, const ListUses& uses,
                           plugrad_status (*call)(void*, uint64_t), void* context);
template <class F> plugrad_status submit_list(StreamState& stream, const char* what, const ListUses& uses, F&& call) {
  return submit_list(stream, what, uses, [](void* f, uint64_t first) { return (*static_cast<F*>(f))(first); }, &call);
}

// Asks the plugin for the last op no longer in flight; returns its number.
uint64_t poll(StreamState& stream);
// Waits until no op submitted so far is in flight, failed or not.
void drain(StreamState& stream);
// Whether no op in flight uses a free block, as far as the core knows without polling.
bool idle(const Storage& storage, bool home_too);
// Waits for all ops up to number; throws a failure of number or of any of its sources.
void verify(StreamState& stream, uint64_t number);
// The same for the last write of storage. No effect if it was never written.
void verify(const Storage& storage);
// Waits for all work submitted to the stream; throws its failure.
void sync(StreamState& stream);
// Waits for all work of all streams; logs failures that no call reported.
void finish_all() noexcept;
// Whether the process is ending or was forked; then the core must not call a plugin with streams.
bool closed();
// For tests of a device's detection of missing waits: with `on` false the core inserts no waits.
void insert_waits(bool on);
// Registers the exit handler again if libraries were loaded since, so that it runs before their exit handlers.
void guard_exit();

}  // namespace streams
}  // namespace plugrad
