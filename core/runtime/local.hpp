// The state of a thread, behind one thread-local pointer: free objects, mode, the last report.
#pragma once
#include <plugrad/sdk/abi.h>
#include <core/runtime/memory/magazine.hpp>
#include <core/runtime/memory/storage.hpp>
#include <plugrad/runtime/error.hpp>

#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace plugrad {

namespace profiling {
class Log;
}
class BudgetScope;
class Observer;

constexpr uint32_t kMagazine = 256;  // capacity of a stack of small objects; it moves between thread and depot whole

// Memory for objects of kSize bytes.
template <size_t kSize> class Pool {
 public:
  // Ensures memory for an object. Throws Error (out_of_memory).
  void reserve() {
    if (magazine_.empty()) [[unlikely]]
      grow();
  }
  void* get_reserved() { return magazine_.pop(); }
  void* get() {
    reserve();
    return get_reserved();
  }
  void put(void* p) {
    if (magazine_.full()) [[unlikely]]
      return put_slow(p);
    magazine_.push(p);
  }
  void flush() { magazine_.flush(depot()); }

 private:
  static Depot<void>& depot() {
    static Depot<void>& d = *new Depot<void>;
    return d;
  }
  [[gnu::noinline, gnu::cold]] void put_slow(void* p) { magazine_.put(p, kMagazine, depot()); }
  [[gnu::noinline, gnu::cold]] void grow() {
    if (magazine_.refill(kMagazine, depot())) return;
    const bool has_room = !magazine_.full() || magazine_.make_room(kMagazine, depot());
    char* chunk = has_room ? static_cast<char*>(std::aligned_alloc(64, kSize * kMagazine)) : nullptr;
    if (!chunk) throw Error(Code::out_of_memory, "[tensor] out of host memory");
    for (uint32_t i = kMagazine; i-- > 0;) magazine_.push(chunk + i * kSize);
  }
  Magazine<void> magazine_;
};

constexpr size_t kObjectBytes = 192;
constexpr uint32_t kFirstMode = 1;
constexpr uint32_t kTrackedMode = 1u << 16;      // set by an op seen by record_memory; higher layers clear it
constexpr uint32_t kTransformedMode = 1u << 17;  // the thread runs a function of a transform: see stand_ins.hpp

// Objects to release after the present release, so that nothing recurses on the depth of a graph. The releasing code links
// them.
struct PendingRelease {
  void* first = nullptr;
  bool running = false;
};

struct Local {
  Pool<kObjectBytes> objects;                                 // for higher layers: objects behind tensors, graph nodes
  std::array<Magazine<Storage>, kStorageLists + 1> storages;  // see small_blocks.hpp; the last is always full
  PendingRelease pending;
  uint32_t mode = kFirstMode;                                // bits of higher layers; a thread starts with kFirstMode set
  std::array<std::atomic<uint64_t>, kMaxDevices> kernels{};  // calls by this thread, the only writer
  std::string report;
  bool short_of_memory = false;  // a kernel declined the current op for lack of memory
  void* checkpoint = nullptr;    // for higher layers: state of their modes
  const void* anomaly = nullptr;
  void* autocast = nullptr;
  void* scope = nullptr;          // the innermost GeneratorScope
  void* cancel = nullptr;         // the innermost CancelScope
  BudgetScope* budget = nullptr;  // the innermost
  Observer* observer = nullptr;   // follows this thread: see observer.hpp
  // Of a profiler, or record_memory.
  std::shared_ptr<profiling::Log> log;  // of this thread, in the session with the id `session`, or in an older session
  uint64_t session = 0;
  const char* gradient_of = nullptr;   // the op whose gradient this thread computes
  const std::string* range = nullptr;  // the name of the innermost range
  uint32_t declined = 0;               // the last op without a kernel on its device

  Local();
  ~Local();
  void count_kernel(uint32_t ordinal) { count_kernels(ordinal, 1); }
  void count_kernels(uint32_t ordinal, uint64_t calls) {
    std::atomic<uint64_t>& n = kernels[ordinal];
    n.store(n.load(std::memory_order_relaxed) + calls, std::memory_order_relaxed);
  }
};

inline constinit thread_local Local* tls = nullptr;
Local& make_local();
inline Local& local() { return tls ? *tls : make_local(); }

// The number of kernel calls of all threads on a device.
uint64_t kernels_called(uint32_t ordinal);

// Returns the last report of a plugin on this thread, and clears it.
std::string take_report();
// "[where] why", with a default text if the plugin gave no reason.
std::string status_text(plugrad_status status, const std::string& where, const std::string& why);
// Throws Error with the status and that text.
[[noreturn]] void throw_status(plugrad_status status, const std::string& where, const std::string& why);

}  // namespace plugrad
