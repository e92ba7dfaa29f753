// The shared state of all streams: the list of streams, and flags about failures.
#pragma once
#include <core/runtime/device_state.hpp>
#include <core/runtime/plugins/platform.hpp>
#include <core/runtime/streams/stream.hpp>

#include <array>
#include <atomic>
#include <mutex>
#include <string_view>

namespace plugrad::streams {

struct Ledger {
  std::mutex mutex;
  std::array<StreamState*, kMaxStreams> all{};
  std::atomic<uint32_t> count{0};
  std::atomic<bool> troubled{false};  // a failure was ever recorded
  std::atomic<bool> closed{false};
  std::atomic<bool> waits{true};
  const bool at_once =
      platform::environment("PLUGRAD_SYNC") && std::string_view(platform::environment("PLUGRAD_SYNC")) == "1";
};
inline Ledger& ledger() {
  static Ledger& l = *new Ledger;  // never destroyed: exit handlers use it
  return l;
}

// Returns a failure of s overlapping [low, high], or null. The caller holds the ledger.
const Span* find(const StreamState& s, uint64_t low, uint64_t high);
[[noreturn]] void throw_lost(const DeviceState& device);

// Locks the gate. Throws Error (device_lost) if the device is lost or the gate closed.
inline void enter(StreamState& s) {
  if (s.device->lost.load(std::memory_order_relaxed) || !s.gate.lock()) [[unlikely]]
    throw_lost(*s.device);
}

// Handles a call on s with a status other than OK. Releases the gate and records any earlier failure; throws, or returns
// the status if it has a fallback.
plugrad_status refused(StreamState& s, const char* what, plugrad_status status);

}  // namespace plugrad::streams
