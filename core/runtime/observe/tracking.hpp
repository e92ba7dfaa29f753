// Where memory came from: the data of record_memory. As for profilers, ops leave the fast path while it is on.
#pragma once
#include <core/runtime/dispatch/dispatch.hpp>

#include <atomic>
#include <functional>
#include <string>
#include <vector>

namespace plugrad::tracking {

inline constinit std::atomic<bool> on{false};
inline bool is_on() { return on.load(std::memory_order_relaxed); }

// The known facts of a storage in use.
struct Origin {
  Storage* storage = nullptr;
  const DeviceState* device = nullptr;
  uint64_t bytes = 0;        // of its block
  uint64_t order = 0;        // counts storages in the order of their first sight
  std::string op;            // the first to write it, "copy" for a copy from elsewhere; empty if ops only read or updated it
  std::string gradient;      // the op whose gradient needed it
  std::string range, where;  // the innermost ProfileRange, and the result of the program's function
  std::string dtype;         // of the first tensor on it in an op; empty without any
  std::vector<int64_t> shape;
  bool parameter = false;  // see mark_parameter
};

// Switches the recording on, forgetting an earlier recording, or off. where: see record_memory.
void start(std::function<std::string()> where);
void stop();

// Records new storages: of a call, and of a copy from elsewhere. May call `where`.
void note(const OpCall& call);
void note_copy(Storage& to);
// Records a parameter with this view on a storage.
void mark_parameter(Storage& storage, const plugrad_view& view);
// Called when a storage with `tracked` is destroyed.
void forget(Storage& storage) noexcept;
// The origins of a device's storages in use, in the order of their first sight.
std::vector<Origin> origins(const DeviceState& device);

// Adds an object of a higher layer that holds memory, and removes it. It must be removed before it is destroyed.
void watch(void* holder);
void unwatch(void* holder) noexcept;
// Calls f with each watched object. No such object is destroyed meanwhile; f must not release the last reference to a
// storage.
void for_each_watched(const std::function<void(void*)>& f);

}  // namespace plugrad::tracking
