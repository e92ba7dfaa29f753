// Where memory came from: what record_memory collects. As for profilers, ops leave the fast path while it is on.
#pragma once
#include <core/runtime/dispatch/dispatch.hpp>

#include <atomic>
#include <functional>
#include <string>
#include <vector>

namespace plugrad::tracking {

inline constinit std::atomic<bool> on{false};
inline bool is_on() { return on.load(std::memory_order_relaxed); }

// What is known of a storage in use.
struct Origin {
  Storage* storage = nullptr;
  const DeviceState* device = nullptr;
  uint64_t bytes = 0;        // of its block
  uint64_t order = 0;        // counts storages in the order in which they were seen first
  std::string op;            // that wrote it first, "copy" for one from elsewhere; empty if ops only read or updated it
  std::string gradient;      // the op whose gradient needed it
  std::string range, where;  // the innermost ProfileRange, and what the program's function returned
  std::string dtype;         // of the first tensor that an op saw on it; empty if none did
  std::vector<int64_t> shape;
  bool parameter = false;  // see mark_parameter
};

// Switches the recording on, forgetting what an earlier one knows, or off. where: see record_memory.
void start(std::function<std::string()> where);
void stop();

// Records the storages of a call that are seen first, and that of a copy from elsewhere. May call `where`.
void note(const OpCall& call);
void note_copy(Storage& to);
// Says that a parameter with this view lies on a storage.
void mark_parameter(Storage& storage, const plugrad_view& view);
// Called when a storage with `tracked` is destroyed.
void forget(Storage& storage) noexcept;
// The origins of a device's storages in use, in the order in which they were seen first.
std::vector<Origin> origins(const DeviceState& device);

// Objects of higher layers that hold memory. Each one is unwatched before it is destroyed.
void watch(void* holder);
void unwatch(void* holder) noexcept;
// Calls f with each of them. None is destroyed meanwhile; f must not drop the last reference to a storage.
void for_each_watched(const std::function<void(void*)>& f);

}  // namespace plugrad::tracking
