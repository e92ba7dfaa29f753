// What all streams share: who there is, and what is known of failures.
#pragma once
#include <core/runtime/device_state.hpp>
#include <core/runtime/platform.hpp>
#include <core/runtime/stream.hpp>

#include <array>
#include <atomic>
#include <mutex>
#include <string_view>

namespace plugrad::streams {

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
inline Ledger& ledger() {
  static Ledger& l = *new Ledger;  // used until the very end of the process
  return l;
}

// A failure of s that touches low to high, or null. Ledger held.
const Span* find(const StreamState& s, uint64_t low, uint64_t high);
[[noreturn]] void throw_lost(const DeviceState& device);

// Takes the gate. Throws Error (device_lost).
inline void enter(StreamState& s) {
  if (s.device->lost.load(std::memory_order_relaxed) || !s.gate.lock()) [[unlikely]] throw_lost(*s.device);
}

// After a call on s answered other than OK: lets go of the gate, takes down what failed before, and throws, or answers a
// status that has a next rung.
plugrad_status refused(StreamState& s, const char* what, plugrad_status status);

}  // namespace plugrad::streams
